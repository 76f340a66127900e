package kafkaproto

import (
	"errors"

	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
)

// Error codes of the protocol that this package answers with.
const (
	codeNone                     int16 = 0
	codeUnknown                  int16 = -1
	codeOffsetOutOfRange         int16 = 1
	codeCorruptMessage           int16 = 2
	codeUnknownTopic             int16 = 3
	codeRequestTimedOut          int16 = 7
	codeMessageTooLarge          int16 = 10
	codeOffsetMetadataTooLarge   int16 = 12
	codeCoordinatorNotAvailable  int16 = 15
	codeInvalidTopic             int16 = 17
	codeInvalidRequiredAcks      int16 = 21
	codeIllegalGeneration        int16 = 22
	codeInconsistentProtocol     int16 = 23
	codeInvalidGroupID           int16 = 24
	codeUnknownMemberID          int16 = 25
	codeInvalidSessionTimeout    int16 = 26
	codeRebalanceInProgress      int16 = 27
	codeTopicDenied              int16 = 29
	codeGroupDenied              int16 = 30
	codeClusterDenied            int16 = 31
	codeUnsupportedSaslMechanism int16 = 33
	codeIllegalSaslState         int16 = 34
	codeUnsupportedVersion       int16 = 35
	codeTopicExists              int16 = 36
	codeInvalidPartitions        int16 = 37
	codeInvalidReplication       int16 = 38
	codeInvalidAssignment        int16 = 39
	codeInvalidConfig            int16 = 40
	codeInvalidRequest           int16 = 42
	codeUnsupportedFormat        int16 = 43
	codePolicyViolation          int16 = 44
	codeOutOfOrderSequence       int16 = 45
	codeInvalidProducerEpoch     int16 = 47
	codeInvalidTxnState          int16 = 48
	codeTransactionDenied        int16 = 53
	codeSecurityDisabled         int16 = 54
	codeNotAttempted             int16 = 55
	codeStorageError             int16 = 56
	codeSaslAuthenticationFailed int16 = 58
	codeNonEmptyGroup            int16 = 68
	codeGroupNotFound            int16 = 69
	codeSessionIDNotFound        int16 = 70
	codeInvalidSessionEpoch      int16 = 71
	codeFencedLeaderEpoch        int16 = 74
	codeUnknownLeaderEpoch       int16 = 75
	codeUnsupportedCompression   int16 = 76
	codeMemberIDRequired         int16 = 79
	codeGroupMaxSize             int16 = 81
	codeFencedInstance           int16 = 82
	codeInvalidRecord            int16 = 87
	codeResourceNotFound         int16 = 91
	codeDuplicateResource        int16 = 92
	codeUnacceptableCredential   int16 = 93
	codeUnknownTopicID           int16 = 100
)

// codeOf maps an error of the store. What may go away by itself gets a code that
// clients retry on (storage error), so that a full disk stops producers and
// loses nothing.
func codeOf(err error) int16 {
	var config *topiclog.ConfigError
	switch {
	case err == nil:
		return codeNone
	case errors.As(err, &config):
		return codeInvalidConfig
	case errors.Is(err, topiclog.ErrTooLarge), errors.Is(err, record.ErrTooLarge):
		return codeMessageTooLarge
	case errors.Is(err, topiclog.ErrOffsetOutOfRange):
		return codeOffsetOutOfRange
	case errors.Is(err, topiclog.ErrTopicNotFound), errors.Is(err, topiclog.ErrPartitionNotFound), errors.Is(err, topiclog.ErrTopicClosing):
		return codeUnknownTopic
	case errors.Is(err, topiclog.ErrTopicExists):
		return codeTopicExists
	case errors.Is(err, topiclog.ErrInvalidTopic):
		return codeInvalidTopic
	case errors.Is(err, topiclog.ErrSubscribed):
		return codePolicyViolation
	case errors.Is(err, record.ErrMagic):
		return codeUnsupportedFormat
	case errors.Is(err, record.ErrCodec):
		return codeUnsupportedCompression
	case errors.Is(err, record.ErrChecksum), errors.Is(err, record.ErrCorrupt), errors.Is(err, record.ErrTruncated), errors.Is(err, topiclog.ErrCorrupt):
		return codeCorruptMessage
	case errors.Is(err, record.ErrInvalid), errors.Is(err, topiclog.ErrInvalidBatch):
		return codeInvalidRecord
	case errors.Is(err, topiclog.ErrSequence):
		return codeOutOfOrderSequence
	case errors.Is(err, topiclog.ErrProducerEpoch):
		return codeInvalidProducerEpoch
	case errors.Is(err, topiclog.ErrTransactionState):
		return codeInvalidTxnState
	case errors.Is(err, topiclog.ErrFenced), errors.Is(err, topiclog.ErrDiskFull), errors.Is(err, topiclog.ErrClosed):
		return codeStorageError
	}
	return codeUnknown
}

// message is the text beside a code, nil without an error.
func message(err error) *string {
	if err == nil {
		return nil
	}
	s := err.Error()
	return &s
}
