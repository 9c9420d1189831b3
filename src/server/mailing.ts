// Mail of a server that may have none: the code is loaded where it is configured.
import type { MailConfig } from "../config/mail.ts";
import type { MailDesk } from "../office/work.ts";
import type { Mailer, MailerParts } from "./mailer.ts";

export class Mailing {
  readonly #parts: Omit<MailerParts, "config" | "url"> & Readonly<{ baseUrl: string }>;
  #mailer: Mailer | null = null;
  /** Null: there is no mail. */
  desk: MailDesk | null = null;

  constructor(parts: Omit<MailerParts, "config" | "url"> & Readonly<{ baseUrl: string }>) {
    this.#parts = parts;
  }

  async follow(config: MailConfig | null): Promise<void> {
    await this.close();
    if (config === null) return;
    const { baseUrl, secret } = this.#parts;
    const url = config.url ?? baseUrl;
    const { Mailer, sendTest } = await import("./mailer.ts");
    this.#mailer = new Mailer({ ...this.#parts, config, url });
    this.desk = { secret, test: (address) => sendTest(config, url, address) };
  }

  async close(): Promise<void> {
    const before = this.#mailer;
    this.#mailer = this.desk = null;
    await before?.close();
  }
}
