// What the process tells Prometheus (text format 0.0.4).

/** One value at the time of asking. `labels` and `name` are ours, never a client's. */
export type Gauge = Readonly<{ name: string; help: string; value: number; labels?: Readonly<Record<string, string>> }>;

export class Metrics {
  readonly #replies = new Map<string, number>();

  /** Counts one reply by the status that its headers carried; `endpoint` is a route's pattern. */
  countReply(endpoint: string, status: number): void {
    const labels = `endpoint="${endpoint}",status="${status}"`;
    this.#replies.set(labels, (this.#replies.get(labels) ?? 0) + 1);
  }

  text(gauges: Iterable<Gauge>): string {
    const lines = [
      "# HELP tollgate_replies_total Replies by endpoint and HTTP status.",
      "# TYPE tollgate_replies_total counter",
    ];
    for (const [labels, count] of this.#replies) lines.push(`tollgate_replies_total{${labels}} ${count}`);
    const described = new Set<string>();
    for (const { name, help, value, labels } of gauges) {
      if (!described.has(name)) lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} gauge`);
      described.add(name);
      const inner = Object.entries(labels ?? {}).map(([label, text]) => `${label}=${JSON.stringify(text)}`);
      lines.push(`${name}${inner.length === 0 ? "" : `{${inner.join(",")}}`} ${value}`);
    }
    return `${lines.join("\n")}\n`;
  }
}
