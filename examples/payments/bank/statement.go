package bank

// A Statement says what a bank has done.
type Statement struct {
	// Balances say by how much each account has changed. That of the house is what was charged
	// and neither given back nor transferred: 0 when every payment has come to its end.
	Balances map[string]int `json:"balances"`
	// Held is what is reserved and neither charged nor released.
	Held int `json:"held"`
	// Keys count what was asked for and done under each idempotency key.
	Keys map[string]Count `json:"keys"`
	// Transfers are all that were made, in order.
	Transfers []Sent    `json:"transfers"`
	Messages  []Message `json:"messages"`
}

// House is what the house has kept of other people's money.
func (s Statement) House() int { return s.Balances[house] }

// Of are the transfers that were made with a reference.
func (s Statement) Of(reference string) []Sent {
	var all []Sent
	for _, t := range s.Transfers {
		if t.Reference == reference {
			all = append(all, t)
		}
	}
	return all
}

// Done are the keys under which an operation was done.
func (s Statement) Done(o Operation) []string {
	var all []string
	for key, c := range s.Keys {
		if c.Operation == o && c.Done > 0 {
			all = append(all, key)
		}
	}
	return all
}

// A Count is what came under one idempotency key.
type Count struct {
	Operation Operation `json:"operation"`
	Asked     int       `json:"asked"` // requests
	Done      int       `json:"done"`  // times that something was done: never more than 1
	Cents     int       `json:"cents,omitempty"`
}

// A Sent is one transfer.
type Sent struct {
	Number    string `json:"number"`
	Reference string `json:"reference"`
	To        string `json:"to"`
	Cents     int    `json:"cents"`
}

// A Message is one that was sent.
type Message struct {
	To   string `json:"to"`
	Text string `json:"text"`
}
