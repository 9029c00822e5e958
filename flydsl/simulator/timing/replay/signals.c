// Signals between workgroups: how long a wave waits for one is known.

// The number of the signal that the wave's next instruction gives or awaits, or -1.
static i64 signal_of(const Wave *wave) {
  if (wave->at + 1 >= wave->end || (wave->at[1] & LINE_WORD) != LDS_WORD || !(wave->at[1] & SIGNAL_WORD & ~LDS_WORD)) return -1;
  return wave->at[1] & ~SIGNAL_WORD;
}

// Whether a wave waits for a signal now that it comes to it.
static int waits_for_signal(const Replay *replay, Wave *wave, u64 time) {
  i64 signal = signal_of(wave);
  if (signal < 0 || wave->asked == wave->at) return 0;
  wave->asked = wave->at;
  replay->asks[signal] = time;
  if (!replay->pauses[signal]) return 0;
  wave->reason = SIGNAL;
  wave->key = time + replay->pauses[signal];
  return 1;
}
