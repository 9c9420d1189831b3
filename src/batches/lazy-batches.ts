// Batches are loaded when somebody asks for one, or where one has not ended.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { BookKeys } from "../account/money/books.ts";
import type { AccountId, Ms, Plan } from "../core/types.ts";
import type { Files } from "../files/files.ts";
import type { Inside, KeptAsked, KeptRoutes } from "../http/kept-routes.ts";
import type { Batches } from "./batches.ts";

/** Of another gateway that shares the folder. */
const lookMs = 10_000;

const routes = [
  ...["POST /v1/batches", "GET /v1/batches", "GET /v1/batches/:id", "POST /v1/batches/:id/cancel"],
  ...["POST /v1/messages/batches", "GET /v1/messages/batches", "GET /v1/messages/batches/:id"],
  ...[
    "POST /v1/messages/batches/:id/cancel",
    "GET /v1/messages/batches/:id/results",
    "DELETE /v1/messages/batches/:id",
  ],
];

export type LazyBatchesOptions = Readonly<{
  folder: string;
  files: Files;
  ofHash: BookKeys["ofHash"];
  planOf(account: AccountId): Plan;
  isCharged(requestId: string): Promise<boolean>;
  /** Absent: there is one gateway. */
  lease?: ((name: string, forMs: Ms) => Promise<boolean>) | undefined;
}>;

export class LazyBatches implements KeptRoutes {
  readonly routes = routes;
  readonly #options: LazyBatchesOptions;
  #inside: Inside | null = null;
  #loading: Promise<Batches> | null = null;
  #loaded: Batches | null = null;
  #looks: Timer | null = null;
  #isClosed = false;

  constructor(options: LazyBatchesOptions) {
    this.#options = options;
  }

  /** Called once the server has what lines need. */
  open(inside: Inside): this {
    this.#inside = inside;
    this.#look();
    if (this.#options.lease !== undefined) this.#looks = setInterval(() => this.#look(), lookMs);
    return this;
  }

  async answer(route: string, asked: KeptAsked) {
    const [batches, { answers }] = await Promise.all([this.batches(), import("./answers.ts")]);
    const endpoints = this.#inside!.dialects.all.map(({ endpoint }) => endpoint);
    return answers[route]!(asked, { batches, files: this.#options.files, endpoints });
  }

  batches(): Promise<Batches> {
    return (this.#loading ??= this.#load());
  }

  async #load(): Promise<Batches> {
    const { Batches } = await import("./batches.ts");
    const { parts, dialects, watch } = this.#inside!;
    const { lease, ...options } = this.#options;
    const dialectAt = (at: string) => dialects.all.find(({ endpoint }) => endpoint === at) ?? dialects.usual;
    this.#loaded = new Batches({
      ...options,
      ...(lease === undefined ? {} : { lease }),
      gateway: parts,
      dialectAt,
      watch,
    });
    return this.#loaded;
  }

  /** Lines that hold something of the books or the nodes. */
  get underWay(): number {
    return this.#loaded?.underWay ?? 0;
  }

  /** One that has not ended goes on. */
  #look(): void {
    if (this.#loading !== null || this.#isClosed) return;
    try {
      if (readdirSync(join(this.#options.folder, "open")).length > 0) void this.batches();
    } catch {} // nobody has made one
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#looks !== null) clearInterval(this.#looks);
    await (await this.#loading)?.close();
  }
}
