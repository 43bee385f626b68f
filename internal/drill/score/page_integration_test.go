//go:build integration

package score

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"image/color"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// browserLimit bounds one start of Chromium on a busy machine.
const browserLimit = 2 * time.Minute

// seen is what a browser did with a page.
type seen struct {
	title   string
	console []string // messages of the page's console
	fetched []string // what the page asked for, whether it got it or not
	widest  int      // width of the widest line in the drawing, in pixels
	ink     int      // pixels of the colour in which this run is drawn
}

// frame holds the page and asks the browser what the page has fetched: the list
// that the browser keeps for each document. Chromium talks to its makers on its
// own account, so what leaves the browser would not tell.
const frame = `<!doctype html><pre id="found"></pre><iframe src="/page.html" width="1100" height="1600" onload="
	const page = this.contentWindow, doc = this.contentDocument
	found.textContent = JSON.stringify({
		title: doc.title,
		fetched: page.performance.getEntriesByType('resource').map(r => r.name),
		widest: Math.round(Math.max(0, ...[...doc.querySelectorAll('polyline')].map(l => l.getBoundingClientRect().width))),
	})"></iframe>`

// browse opens a page in Debian's Chromium, which reaches nothing but a proxy of
// ours.
func browse(t *testing.T, page string, ink color.RGBA) seen {
	t.Helper()
	if _, err := exec.LookPath("chromium"); err != nil {
		if os.Getenv("IC_INTEGRATION") == "1" {
			t.Fatal("chromium is not on PATH, and IC_INTEGRATION=1 wants it: install chromium")
		}
		t.Skip("chromium is not on PATH: install chromium to run this test")
	}
	const site = "http://rehearsal.invalid"
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		switch r.URL.String() {
		case site + "/frame.html":
			fmt.Fprint(w, frame)
		case site + "/page.html":
			fmt.Fprint(w, page)
		default:
			http.NotFound(w, r)
		}
	}))
	defer proxy.Close()
	shot := filepath.Join(t.TempDir(), "page.png")
	common := []string{
		"--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-default-apps", "--disable-extensions",
		"--enable-logging=stderr", "--user-data-dir=" + t.TempDir(), "--proxy-server=" + proxy.URL, "--proxy-bypass-list=<-loopback>",
		"--window-size=1100,1600",
	}
	open := func(how, file string) (string, string) {
		ctx, cancel := context.WithTimeout(t.Context(), browserLimit)
		defer cancel()
		cmd := exec.CommandContext(ctx, "chromium", append(slices.Clone(common), how, site+file)...)
		var out, said strings.Builder
		cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &said, 5*time.Second
		if err := cmd.Run(); err != nil {
			t.Fatalf("chromium %s: %v\n%s", how, err, &said)
		}
		return out.String(), said.String()
	}
	dom, said := open("--dump-dom", "/frame.html")
	s := seenIn(t, dom)
	for line := range strings.Lines(said) {
		if strings.Contains(line, "CONSOLE") {
			s.console = append(s.console, line)
		}
	}
	open("--screenshot="+shot, "/page.html")
	s.ink = count(t, shot, ink)
	return s
}

func seenIn(t *testing.T, dom string) seen {
	t.Helper()
	text := regexp.MustCompile(`<pre id="found">(.*)</pre>`).FindStringSubmatch(dom)
	var found struct {
		Title   string
		Fetched []string
		Widest  int
	}
	if text == nil || json.Unmarshal([]byte(html.UnescapeString(text[1])), &found) != nil {
		t.Fatalf("the browser told nothing of the page:\n%s", dom)
	}
	return seen{title: found.Title, fetched: found.Fetched, widest: found.Widest}
}

func count(t *testing.T, file string, ink color.RGBA) int {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	picture, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	n, b := 0, picture.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			if color.RGBAModel.Convert(picture.At(x, y)) == ink {
				n++
			}
		}
	}
	return n
}

// runInk is --run of the light page.
func runInk() color.RGBA { return color.RGBA{0x1f, 0x5f, 0xa8, 0xff} }

func TestChromiumDrawsThePageWithoutAnErrorAndFetchesNothing(t *testing.T) {
	r := outage()
	base := outage()
	base.Mode = Baseline
	s := Of(r, Options{Baseline: base})
	page, err := Page(&s, r, base)
	if err != nil {
		t.Fatal(err)
	}
	got := browse(t, string(page), runInk())
	if len(got.console) > 0 {
		t.Errorf("the console says:\n%s", strings.Join(got.console, ""))
	}
	if len(got.fetched) > 0 {
		t.Errorf("the page fetched %q", got.fetched)
	}
	if !strings.HasPrefix(got.title, "REHEARSAL: risk-down") || got.widest < 600 {
		t.Errorf("the title is %q, the widest line %d pixels", got.title, got.widest)
	}
	// The lines of this run are over 1,000 units long in all, two wide.
	if got.ink < 1_000 {
		t.Errorf("%d pixels of the timeline are on the screen", got.ink)
	}
}

// A page that does what ours must not shows that the test above sees it.
func TestChromiumTellsOfAnErrorAndOfAFetch(t *testing.T) {
	bad := `<!doctype html><title>bad</title><img src="http://elsewhere.invalid/x.png"><script>console.error("broken"); nothing.here()</script>`
	got := browse(t, bad, runInk())
	if len(got.console) == 0 {
		t.Error("no console error was seen")
	}
	if !slices.Contains(got.fetched, "http://elsewhere.invalid/x.png") {
		t.Errorf("the fetch was not seen: %q", got.fetched)
	}
	if got.ink != 0 || got.widest != 0 {
		t.Errorf("%d pixels of a timeline that is not there", got.ink)
	}
}
