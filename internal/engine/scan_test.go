package engine

import (
	"bytes"
	"fmt"
	"testing"
)

func lines(t *testing.T, n int) []byte {
	t.Helper()
	var out []byte
	for i := range n {
		var err error
		if out, err = encode(out, record{N: i + 1, Type: recordBudget, Control: "risk", Right: "open", Day: fmt.Sprintf("2026-11-%02d", i+1), Count: int64(i + 1)}); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func TestNoSingleBitCostsARecord(t *testing.T) {
	const n = 4
	clean := lines(t, n)
	for offset := range clean {
		for bit := range 8 {
			data := bytes.Clone(clean)
			data[offset] ^= 1 << bit
			found := scan(data)
			if len(found.records) != n || found.lost != 0 {
				t.Fatalf("byte %d, bit %d: %d of %d records, %d lost", offset, bit, len(found.records), n, found.lost)
			}
			for i, r := range found.records {
				if r.N != i+1 || r.Count != int64(i+1) {
					t.Fatalf("byte %d, bit %d: record %d reads %+v", offset, bit, i, r)
				}
			}
		}
	}
}

func TestATornFileKeepsWhatWasWrittenWhole(t *testing.T) {
	const n = 4
	clean := lines(t, n)
	one := len(lines(t, 1)) / 2 // all lines of this test are as long as the first
	for size := range clean {
		want := (size + 1) / one // a copy needs its line end no more
		found := scan(clean[:size])
		if len(found.records) != (want+1)/2 || found.lost != 0 {
			t.Fatalf("cut at %d: %d records, want %d; %d lost", size, len(found.records), (want+1)/2, found.lost)
		}
	}
}

func TestALostRecordIsNoticed(t *testing.T) {
	clean := lines(t, 4)
	one := len(lines(t, 1))
	hole := append(bytes.Clone(clean[:one]), bytes.Repeat([]byte{0}, one)...)
	found := scan(append(hole, clean[2*one:]...))
	if len(found.records) != 3 || found.lost != 1 || found.damaged == 0 {
		t.Errorf("%d records, %d lost, %d damaged", len(found.records), found.lost, found.damaged)
	}
}

func FuzzScanNeverPanicsAndNeverMakesUpARecord(f *testing.F) {
	f.Add([]byte("junk\n"))
	f.Add([]byte("0123456789abcdef 000002 {}\n"))
	f.Add([]byte("44136fa355b3678a 000002 {}\n44136fa355b3678a 999999 {}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		last := 0
		for _, r := range scan(data).records {
			if r.N <= last {
				t.Errorf("record %d after %d", r.N, last)
			}
			last = r.N
		}
	})
}
