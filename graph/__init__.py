"""Who runs when: state, nodes, routing, recipes, consensus, traces."""
