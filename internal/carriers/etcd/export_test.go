package etcd

// SetMost changes how many keys are read at most.
func (c *Carrier) SetMost(n int) { c.most = n }
