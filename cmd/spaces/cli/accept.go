package cli

import "spaces/schema"

// acceptReport is what drift --accept prints as JSON.
type acceptReport struct {
	FormatVersion int          `json:"format_version"`
	Project       string       `json:"project"`
	Edits         []acceptEdit `json:"edits"`
	Left          []acceptLeft `json:"left"`
}

// acceptEdit is an edit of one file.
type acceptEdit struct {
	File string `json:"file"`
	// Diff is a unified diff.
	Diff string `json:"diff"`
}

// acceptLeft is a difference that no edit of the files accepts.
type acceptLeft struct {
	Subject string         `json:"subject"`
	Field   string         `json:"field,omitempty"`
	Why     string         `json:"why"`
	Instead string         `json:"instead"`
	Origin  *schema.Origin `json:"origin,omitempty"`
}
