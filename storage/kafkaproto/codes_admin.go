package kafkaproto

// Error codes that only administration and groups answer with.
const (
	codeInvalidTimestamp       int16 = 32
	codeLogDirNotFound         int16 = 57
	codeElectionNotNeeded      int16 = 84
	codeNoReassignment         int16 = 85
	codeGroupSubscribedToTopic int16 = 86
	codeInvalidUpdateVersion   int16 = 95
	codeFetchSessionTopicID    int16 = 106
	codeFencedMemberEpoch      int16 = 110
	codeUnreleasedInstance     int16 = 111
	codeUnsupportedAssignor    int16 = 112
	codeStaleMemberEpoch       int16 = 113
	codeMismatchedEndpointType int16 = 114
	codeInvalidRegexp          int16 = 128
)
