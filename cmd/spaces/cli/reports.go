package cli

// The reports that docs/plan.schema.json describes, beside a plan's record.
type (
	DriftReport   = driftReport
	AcceptReport  = acceptReport
	ProblemReport = problemReport
)
