//go:build rivals && temporal

package main

import (
	"testing"

	"go.temporal.io/sdk/testsuite"
)

// Temporal runs as many activities as a run has steps. The server is that of its test suite.
func TestTemporalCounts(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterActivity(temporalWrite)
	env.ExecuteWorkflow(temporalRun, 3)
	var count int
	err := env.GetWorkflowError()
	if err == nil {
		err = env.GetWorkflowResult(&count)
	}
	if err := counted(plain{Count: count}, err, 3); err != nil {
		t.Error(err)
	}
}
