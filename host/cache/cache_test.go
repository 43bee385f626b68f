package cache_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/degradedmode/ic/host/cache"
	"github.com/degradedmode/ic/host/fallback"
)

func TestAFreshAnswerIsServedWithoutAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		for range 3 {
			a, err := b.Get(t.Context(), ours, b.gives(100))
			if err != nil || a.Value.cents != 100 || a.Stale {
				t.Fatalf("%+v, %v", a, err)
			}
			time.Sleep(10 * time.Second)
		}
		if b.calls.Load() != 1 {
			t.Errorf("asked %d times", b.calls.Load())
		}
		a, err := b.Get(t.Context(), ours, b.fails)
		if err != nil || a.Age != 30*time.Second {
			t.Errorf("%+v, %v", a, err)
		}
	})
}

func TestOneFetchServesAllWhoAskForTheSameAndNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(cfg *cache.Config[*price]) { cfg.MaxFetches = 50 })
		var calls atomic.Int32
		slow := func(cents int) cache.Fetch[*price] {
			return func(context.Context) (*price, error) {
				calls.Add(1)
				time.Sleep(100 * time.Millisecond)
				return &price{cents, cents}, nil
			}
		}
		var wait sync.WaitGroup
		for i := range 40 {
			key, cents := ours, 100
			if i%2 == 1 {
				key.Scope, cents = "tenant-b", 200
			}
			wait.Go(func() {
				if a, err := b.Get(t.Context(), key, slow(cents)); err != nil || a.Value.cents != cents {
					t.Errorf("%s gets %+v, %v", key.Scope, a, err)
				}
			})
		}
		wait.Wait()
		if calls.Load() != 2 {
			t.Errorf("%d fetches for two scopes", calls.Load())
		}
	})
}

func TestAFetchGoesOnWithoutTheOneWhoBeganIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		release := make(chan struct{})
		hung := func(ctx context.Context) (*price, error) {
			<-release
			return &price{100, 100}, ctx.Err()
		}
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error)
		go func() {
			_, err := b.Get(ctx, ours, hung)
			left <- err
		}()
		synctest.Wait()
		cancel()
		wantRefused(t, <-left, cache.Gone, context.Canceled)
		got := make(chan cache.Answer[*price])
		go func() {
			a, _ := b.Get(t.Context(), ours, b.fails)
			got <- a
		}()
		synctest.Wait()
		close(release)
		if a := <-got; a.Value == nil || a.Value.cents != 100 || b.calls.Load() != 0 {
			t.Errorf("the one who came later gets %+v", a)
		}
	})
}

func TestADependencyThatIgnoresItsDeadlineHoldsUpNobodyForLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		if _, err := b.Get(t.Context(), ours, b.gives(100)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		release := make(chan struct{})
		deaf := func(context.Context) (*price, error) { <-release; return nil, errDown }
		for i, want := range []time.Duration{200 * time.Millisecond, 0, 0} {
			began := time.Now()
			a, err := b.Get(t.Context(), ours, deaf)
			if took := time.Since(began); took != want || err != nil || !a.Stale || !errors.Is(a.Cause, context.DeadlineExceeded) {
				t.Errorf("question %d: %+v, %v after %s, want %s", i, a, err, took, want)
			}
		}
		close(release)
		synctest.Wait()
	})
}

func TestAfterAFailureTheDependencyRestsAndStaleAnswersComeAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil) // with this chance it rests for exactly RetryAfter, one second
		if _, err := b.Get(t.Context(), ours, b.gives(100)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		b.calls.Store(0)
		for range 10 {
			if a, err := b.Get(t.Context(), ours, b.fails); err != nil || !a.Stale || !errors.Is(a.Cause, errDown) {
				t.Fatalf("%+v, %v", a, err)
			}
			time.Sleep(99 * time.Millisecond)
		}
		if b.calls.Load() != 1 {
			t.Errorf("asked %d times within a second of the failure", b.calls.Load())
		}
		time.Sleep(10 * time.Millisecond)
		if a, err := b.Get(t.Context(), ours, b.gives(200)); err != nil || a.Stale || a.Value.cents != 200 {
			t.Errorf("after the rest: %+v, %v", a, err)
		}
	})
}

func TestFreshEntriesAreRenewedEarlyEachAtAMomentOfItsOwn(t *testing.T) {
	for _, c := range []struct {
		chance float64
		from   time.Duration // of the 60 s for which it is fresh
	}{{0, 60 * time.Second}, {0.5, 54 * time.Second}, {0.999, 48012 * time.Millisecond}} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, func(cfg *cache.Config[*price]) { cfg.Rand = func() float64 { return c.chance } })
			if _, err := b.Get(t.Context(), ours, b.gives(100)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(c.from - time.Millisecond)
			for _, want := range []int{1, 2} { // calls before and at the moment
				a, err := b.Get(t.Context(), ours, b.gives(200))
				synctest.Wait()
				if err != nil || a.Value.cents != 100 || a.Stale || b.calls.Load() != int32(want) {
					t.Errorf("chance %g: %+v, %v, %d calls, want %d", c.chance, a, err, b.calls.Load(), want)
				}
				time.Sleep(time.Millisecond)
			}
			if a, err := b.Get(t.Context(), ours, b.fails); err != nil || a.Value.cents != 200 {
				t.Errorf("chance %g: the renewed one is not served: %+v, %v", c.chance, a, err)
			}
		})
	}
}

func TestAnEarlyRenewalThatFailsIsNotTriedWithEveryQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		if _, err := b.Get(t.Context(), ours, b.gives(100)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(55 * time.Second)
		b.calls.Store(0)
		for range 100 {
			if a, err := b.Get(t.Context(), ours, b.fails); err != nil || a.Stale {
				t.Fatalf("%+v, %v", a, err)
			}
			synctest.Wait()
		}
		if b.calls.Load() != 1 {
			t.Errorf("asked %d times", b.calls.Load())
		}
	})
}

func TestWhatIsForgottenIsNeitherServedNorBroughtBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		theirs := cache.Key{Scope: "tenant-b", Policy: "3", Name: "prices"}
		for _, key := range []cache.Key{ours, theirs} {
			if _, err := b.Get(t.Context(), key, b.gives(100)); err != nil {
				t.Fatal(err)
			}
		}
		release := make(chan struct{})
		other := ours
		other.Name = "under way"
		begun := make(chan struct{})
		go func() {
			defer close(begun)
			_, _ = b.Get(t.Context(), other, func(context.Context) (*price, error) { <-release; return &price{1, 1}, nil })
		}()
		synctest.Wait()
		b.Forget("tenant-a")
		for _, key := range []cache.Key{ours, other} { // other does not wait for the flight of before
			_, err := b.Get(t.Context(), key, b.fails)
			wantRefused(t, err, cache.Nothing, errDown)
		}
		close(release)
		<-begun
		_, err := b.Get(t.Context(), other, b.fails)
		wantRefused(t, err, cache.Nothing, errDown)
		if a, err := b.Get(t.Context(), theirs, b.fails); err != nil || a.Value.cents != 100 {
			t.Errorf("another tenant's is gone: %+v, %v", a, err)
		}
	})
}

func TestEntriesAndBytesAreBounded(t *testing.T) {
	sized := func(t *testing.T, entries int, bytes int64) *cache.Cache[string] {
		c, err := cache.New(cache.Config[string]{
			Name: "pages", Fresh: time.Minute, Size: func(v string) int { return len(v) }, MaxEntries: entries, MaxBytes: bytes,
		})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	get := func(c *cache.Cache[string], name, value string) string {
		a, err := c.Get(t.Context(), cache.Key{Scope: "a", Policy: "1", Name: name}, func(context.Context) (string, error) { return value, nil })
		if err != nil {
			t.Fatal(err)
		}
		return a.Value
	}
	t.Run("entries, the one that was used the longest ago goes first", func(t *testing.T) {
		c := sized(t, 2, 0)
		get(c, "a", "1")
		get(c, "b", "1")
		get(c, "a", "2")
		get(c, "c", "1")
		if a, b := get(c, "a", "3"), get(c, "b", "3"); a != "1" || b != "3" {
			t.Errorf("a is %s, b is %s", a, b)
		}
	})
	t.Run("bytes", func(t *testing.T) {
		c := sized(t, 0, 100_000)
		for i := range 1000 {
			get(c, fmt.Sprint(i), strings.Repeat("x", 5000))
		}
		if got := text(t, c); !strings.Contains(got, `ic_cache_entries{cache="pages"} 19`) || !strings.Contains(got, `ic_cache_evicted_total{cache="pages"} 981`) {
			t.Errorf("%s", got)
		}
	})
	t.Run("one that is too large is served and not kept", func(t *testing.T) {
		c := sized(t, 0, 16_000)
		get(c, "small", "1")
		if got := get(c, "large", strings.Repeat("x", 1001)); len(got) != 1001 {
			t.Errorf("%d bytes are served", len(got))
		}
		if large, small := get(c, "large", "2"), get(c, "small", "2"); large != "2" || small != "1" {
			t.Errorf("large is %.8s, small is %s", large, small)
		}
		if !strings.Contains(text(t, c), `ic_cache_unkept_total{cache="pages"} 1`) {
			t.Error("it is not counted")
		}
	})
}

func TestAClockThatIsSetBackMakesNothingYounger(t *testing.T) {
	now := time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)
	b := newBench(t, func(cfg *cache.Config[*price]) { cfg.Now = func() time.Time { return now } })
	if _, err := b.Get(t.Context(), ours, b.gives(100)); err != nil {
		t.Fatal(err)
	}
	now = now.Add(-time.Second)
	_, err := b.Get(t.Context(), ours, b.fails)
	wantRefused(t, err, cache.TooOld, errDown)
}

func TestAFetchThatDoesNotReturnAnAnswerIsAnError(t *testing.T) {
	for name, fetch := range map[string]cache.Fetch[*price]{
		"panics": func(context.Context) (*price, error) { panic("a bug") },
		"exits":  func(context.Context) (*price, error) { runtime.Goexit(); return nil, nil },
	} {
		b := newBench(t, nil)
		var refused *cache.Refused
		if _, err := b.Get(t.Context(), ours, fetch); !errors.As(err, &refused) || refused.Why != cache.Nothing {
			t.Errorf("%s: %v", name, err)
		}
		if a, err := b.Get(t.Context(), ours, b.gives(1)); err != nil || a.Value.cents != 1 {
			t.Errorf("%s: and then %+v, %v", name, a, err)
		}
	}
}

func TestAConfigurationThatBoundsNothingIsRefused(t *testing.T) {
	good := cache.Config[int]{Name: "n", Fresh: time.Second, Size: func(int) int { return 8 }}
	if _, err := cache.New(good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*cache.Config[int]){
		"no name":            func(c *cache.Config[int]) { c.Name = "" },
		"no size":            func(c *cache.Config[int]) { c.Size = nil },
		"never fresh":        func(c *cache.Config[int]) { c.Fresh = 0 },
		"stale before fresh": func(c *cache.Config[int]) { c.Stale = -1 },
		"a timeout below 0":  func(c *cache.Config[int]) { c.Timeout = -1 },
		"entries below 0":    func(c *cache.Config[int]) { c.MaxEntries = -1 },
		"bytes below 0":      func(c *cache.Config[int]) { c.MaxBytes = -1 },
	} {
		cfg := good
		change(&cfg)
		if _, err := cache.New(cfg); err == nil {
			t.Errorf("%s: it is taken", name)
		}
	}
}

func TestManyWhoAskAtTheSameTimeGetTheirOwnAnswers(t *testing.T) {
	c, err := cache.New(cache.Config[string]{
		Name: "pages", Fresh: time.Millisecond, Stale: time.Minute, Size: func(v string) int { return len(v) },
		Check: func(k cache.Key, v string) error {
			if v != k.Scope+k.Policy+k.Name {
				return errors.New("of another key")
			}
			return nil
		},
		MaxEntries: 20, MaxFetches: 4,
	})
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for w := range 8 {
		wait.Go(func() {
			for i := range 300 {
				key := cache.Key{Scope: fmt.Sprint("s", (w+i)%3), Policy: fmt.Sprint("p", i%2), Name: fmt.Sprint("n", i%7)}
				a, err := c.Get(t.Context(), key, func(context.Context) (string, error) {
					if i%5 == 0 {
						return "", errDown
					}
					return key.Scope + key.Policy + key.Name, nil
				})
				if err == nil && a.Value != key.Scope+key.Policy+key.Name {
					t.Errorf("%v gets %q", key, a.Value)
				}
				if i%100 == 0 {
					c.Forget("s1")
					c.Metrics()
				}
			}
		})
	}
	wait.Wait()
	if got := text(t, c); !strings.Contains(got, `outcome="corrupt"} 0`) {
		t.Errorf("an answer lay under another key:\n%s", got)
	}
}

func TestEveryQuestionIsCountedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		ask := func(key cache.Key, fetch cache.Fetch[*price]) { _, _ = b.Get(t.Context(), key, fetch) }
		ask(ours, b.gives(1))
		ask(ours, b.gives(1))
		ask(cache.Key{Scope: "a", Name: "n"}, b.fails)
		ask(cache.Key{Policy: "a", Name: "n"}, b.gives(1))
		time.Sleep(2 * time.Minute)
		ask(ours, b.fails)
		time.Sleep(5 * time.Minute)
		ask(ours, b.fails)
		ask(ours, b.fails)
		got := text(t, b.Cache)
		for outcome, n := range map[string]int{"fresh": 1, "fetched": 2, "stale": 1, "no-policy": 1, "no-scope": 0, "too-old": 1, "nothing": 1, "corrupt": 0, "gone": 0} {
			if line := fmt.Sprintf(`ic_cache_answers_total{cache="prices",outcome="%s"} %d`, outcome, n); !strings.Contains(got, line+"\n") {
				t.Errorf("%s is missing in\n%s", line, got)
			}
		}
	})
}

func BenchmarkHit(b *testing.B) {
	c, err := cache.New(cache.Config[string]{Name: "pages", Fresh: time.Hour, Size: func(v string) int { return len(v) }})
	if err != nil {
		b.Fatal(err)
	}
	fetch := func(context.Context) (string, error) { return "page", nil }
	if _, err := c.Get(b.Context(), ours, fetch); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if a, err := c.Get(b.Context(), ours, fetch); err != nil || a.Stale {
			b.Fatal(a, err)
		}
	}
}

func ExampleCache() {
	counters, _ := fallback.New(fallback.Config{Dependencies: []string{"reviews"}})
	reviews, err := cache.New(cache.Config[[]string]{
		Name: "reviews", Fresh: time.Minute, Stale: 5 * time.Minute, Fallbacks: counters,
		Size: func(v []string) int { return len(strings.Join(v, "")) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	key := cache.Key{Scope: "tenant-a", Policy: "catalog-3", Name: "reviews of product 17"}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second) // the request's
	defer cancel()
	answer, err := reviews.Get(ctx, key, func(ctx context.Context) ([]string, error) { return []string{"bright"}, nil })
	fmt.Println(answer.Value, answer.Stale, err)

	other := key
	other.Scope = "tenant-b" // shares nothing with tenant-a
	_, err = reviews.Get(ctx, other, func(ctx context.Context) ([]string, error) { return nil, errors.New("503") })
	fmt.Println(err)
	// Output:
	// [bright] false <nil>
	// ask reviews: 503; and from the cache: nothing is kept for it
}
