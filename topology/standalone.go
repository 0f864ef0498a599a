package topology

import "context"

var standaloneProcess = Kind{
	Store: "valkey", Kind: "standalone", Provider: "process",
	Summary: "one server that we run",
	assemble: func(order Order) (assembled, error) {
		one, err := newServer(order, 0)
		if err != nil {
			return nil, err
		}
		return standalone(order, one), nil
	},
}

// standalone is one node, which is the primary.
func standalone(order Order, one node) *nodes {
	n := &nodes{order: order, list: []node{one}}
	n.roles = map[string]func(context.Context) ([]node, error){
		"primary": func(context.Context) ([]node, error) { return n.list, nil },
	}
	return n
}
