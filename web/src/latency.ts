// Hand to picture: from the pointer event to the drawn frame in which the world had it.

const KEPT = 90; // samples in the median
const OLDEST_PENDING = 240; // sequences; two seconds of sending

export class LatencyMeter {
  private readonly pending: { sequence: number; eventTime: number }[] = [];
  private readonly samples: number[] = [];

  /** A message left; `eventTime` is when the hand moved, on the clock of performance.now [ms]. */
  sent(sequence: number, eventTime: number): void {
    this.pending.push({ sequence, eventTime });
    if (this.pending.length > OLDEST_PENDING) this.pending.shift();
  }

  /** A frame that holds all up to `applied` is on the screen at `now`. Older movements were never shown alone. */
  drawn(applied: number, now: number): void {
    let newest: number | null = null;
    while (this.pending.length > 0 && this.pending[0].sequence <= applied) {
      newest = this.pending.shift()?.eventTime ?? null;
    }
    if (newest === null) return;
    this.samples.push(now - newest);
    if (this.samples.length > KEPT) this.samples.shift();
  }

  /** Null until something was measured [ms]. */
  median(): number | null {
    if (this.samples.length === 0) return null;
    const sorted = [...this.samples].sort((a, b) => a - b);
    return sorted[sorted.length >> 1];
  }

  count(): number {
    return this.samples.length;
  }

  /** Sequences start again with a new connection or session. */
  forget(): void {
    this.pending.length = 0;
  }
}
