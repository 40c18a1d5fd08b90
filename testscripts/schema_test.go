package testscripts

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"spaces/cmd/spaces/cli"
)

// reportSchema describes the reports of the verbs that have one.
const reportSchema = "../docs/plan.schema.json"

// describes tells whether a command line asks for a report that the schema describes.
func describes(args []string) bool {
	has := func(any ...string) bool {
		return slices.ContainsFunc(any, func(a string) bool { return slices.Contains(args, a) })
	}
	return has("plan", "drift", "show") && has("--json", "--format=json") && !has("--help")
}

// judge holds a report to the schema.
func judge(schema string, report []byte) error {
	compiled, err := jsonschema.NewCompiler().Compile(schema)
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(report))
	if err != nil {
		return fmt.Errorf("the report is no JSON: %w\n%s", err, report)
	}
	if err := compiled.Validate(v); err != nil {
		return fmt.Errorf("the report isn't as %s says: %w\n%s", schema, err, report)
	}
	return nil
}

// program is the program as scripts run it: each JSON report that it prints is held to
// the schema, and one that isn't as it says ends it with a status of its own.
func program() {
	const misfit = 99
	env := cli.System()
	if !describes(env.Args) {
		os.Exit(cli.Main(env))
	}
	var report bytes.Buffer
	env.Stdout.Writer = io.MultiWriter(env.Stdout.Writer, &report)
	status := cli.Main(env)
	// Scripts run in folders of their own; this one is handed down.
	if err := judge(os.Getenv("SPACES_TEST_SCHEMA"), report.Bytes()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(misfit)
	}
	os.Exit(status)
}
