package model

// Codes of static refusals: what a host and the console say alike when a
// directive is not within its policy. They are part of the formats: never
// renamed, never reused.
const (
	CodeMalformed       Code = "malformed"        // not a token, or not canonical
	CodeTooLong         Code = "too-long"         // token over 4,096 bytes
	CodeBadSignature    Code = "bad-signature"    // a blob that does not verify
	CodeUnsupported     Code = "unsupported"      // a kind or version this software does not know
	CodeForeignFleet    Code = "foreign-fleet"    // audience is another fleet
	CodeUnknownKey      Code = "unknown-key"      // signer is not in the trust root
	CodeRevokedKey      Code = "revoked-key"      // signer's key is revoked
	CodeUnknownRight    Code = "unknown-right"    // no active rule of that name
	CodeInactiveDomain  Code = "inactive-domain"  // the rule's domain lacks its owners' signatures
	CodePolicyExpired   Code = "policy-expired"   // loosening under an expired policy
	CodePolicyBehind    Code = "policy-behind"    // the host holds an older policy than the directive was judged by
	CodePolicyMismatch  Code = "policy-mismatch"  // same version, another digest
	CodeWrongKind       Code = "wrong-kind"       // the rule does not grant that kind
	CodeWrongRole       Code = "wrong-role"       // no signer holds the role the rule wants
	CodeQuorum          Code = "quorum"           // too few distinct co-signers
	CodeOutOfScope      Code = "out-of-scope"     // the rule does not cover that service
	CodeOverTier        Code = "over-tier"        // tier outside the rule's bounds
	CodeOverCap         Code = "over-cap"         // a cap over the rule's
	CodeOverDuration    Code = "over-duration"    // window longer than the rule's
	CodeOverLive        Code = "over-live"        // as many grants of the rule as it allows are in force
	CodeNoEnd           Code = "no-end"           // bypass, freeze or ping without not_after
	CodeExpired         Code = "expired"          // not_after has passed
	CodeFuture          Code = "future"           // issued more than 24 h ahead
	CodeEnded           Code = "ended"            // ended before it arrived
	CodeClockUnfit      Code = "clock-unfit"      // loosening with a clock that cannot be trusted
	CodeVolatile        Code = "volatile-host"    // a host without a state folder opens nothing
	CodeBadRecovery     Code = "bad-recovery"     // an end of sheds without a one-tier step
	CodeNeverOpens      Code = "never-opens"      // authorization never opens
	CodeUnknownFeature  Code = "unknown-feature"  // off of something the policy does not name
	CodeUnknownControl  Code = "unknown-control"  // bypass of something the policy does not name
	CodeDuplicateSigner Code = "duplicate-signer" // one key signed twice
)
