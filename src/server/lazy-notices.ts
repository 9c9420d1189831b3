// Notices of a server that may have no webhooks: their code is loaded with the first one.
import type { WebhookConfig } from "../config/webhooks.ts";
import type { WebhookState } from "../notices/deliveries.ts";
import type { NoticeParts, NoticeWatch } from "./notice-watch.ts";

export class LazyNotices {
  readonly #parts: NoticeParts;
  #watch: Promise<NoticeWatch> | null = null;
  #loaded: NoticeWatch | null = null;

  constructor(parts: NoticeParts) {
    this.#parts = parts;
  }

  async configure(webhooks: readonly WebhookConfig[]): Promise<void> {
    if (this.#watch !== null || webhooks.length > 0) (await this.#open()).configure(webhooks);
  }

  /** What there would be to tell of the ledger and of backups. */
  get findings(): Pick<NoticeParts["watch"]["state"], "violations"> & {
    backupFailure: NoticeParts["backups"]["failure"];
  } {
    const { watch, backups } = this.#parts;
    return { violations: watch.state.violations, backupFailure: backups.failure };
  }

  states(): readonly WebhookState[] {
    return this.#loaded?.states() ?? [];
  }

  /** As NoticeWatch. */
  async test(name: string): Promise<string | null> {
    return (await this.#open()).test(name);
  }

  close(): void {
    this.#loaded?.close();
  }

  #open(): Promise<NoticeWatch> {
    this.#watch ??= import("./notice-watch.ts").then(
      ({ NoticeWatch }) => (this.#loaded = new NoticeWatch(this.#parts)),
    );
    return this.#watch;
  }
}
