// Mail of a server that may have none: the code is loaded where it is configured.
import type { MailConfig } from "../config/mail.ts";
import type { MailDesk } from "../office/work.ts";
import type { Mailer, MailerParts } from "./mailer.ts";

/** What is written there waits in the books, for a running server. */
export const deskOf = (config: MailConfig, baseUrl: string, secret: Uint8Array): MailDesk => ({
  secret,
  test: async (address) => (await import("./mailer.ts")).sendTest(config, config.url ?? baseUrl, address),
});

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
    const { Mailer } = await import("./mailer.ts");
    this.#mailer = new Mailer({ ...this.#parts, config, url: config.url ?? baseUrl });
    this.desk = deskOf(config, baseUrl, secret);
  }

  async close(): Promise<void> {
    const before = this.#mailer;
    this.#mailer = this.desk = null;
    await before?.close();
  }
}
