package reconcile

import "context"

// Applier carries out single steps. It reads an object again before it acts on it and
// fails when the object has moved since it was inspected for the plan.
type Applier interface {
	Apply(ctx context.Context, step Step) error
}
