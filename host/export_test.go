package host

import "time"

// RetryEvery makes a host without a policy look for one more often.
func (c *Config) RetryEvery(d time.Duration) { c.retryEvery = d }
