-- Writes the events as JSON lines, so that other engines read the same ones:
--
--   millrace run generate.sql -f source/generator.sql --set EVENTS_NUM=50000 --set EVENTS=/data/nexmark
SET 'pipeline.name' = 'nexmark-generate';

-- One file, however many events: their order is the order of its lines.
CREATE TABLE files (
  event_type INT,
  person ROW<id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING, state STRING,
             `dateTime` TIMESTAMP(3), extra STRING>,
  auction ROW<id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT,
              `dateTime` TIMESTAMP(3), expires TIMESTAMP(3), seller BIGINT, category BIGINT, extra STRING>,
  bid ROW<auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING,
          `dateTime` TIMESTAMP(3), extra STRING>
) WITH (
  'connector' = 'filesystem', 'path' = '${EVENTS}', 'format' = 'json', 'json.encode.ignore-null-fields' = 'true',
  'sink.rolling-policy.file-size' = '1TB', 'sink.rolling-policy.rollover-interval' = '1 d'
);
INSERT INTO files SELECT event_type, person, auction, bid FROM events;
