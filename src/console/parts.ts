// What the console depends on; `tollgate serve` assembles it.
import type { TokenMaking } from "../account/sign-in/devices.ts";
import type { KnownBrowsers } from "../account/sign-in/known-browsers.ts";
import type { Office } from "../account/office.ts";
import type { Passwords } from "../account/sign-in/passwords.ts";
import type { SessionLookup } from "../account/sign-in/sessions.ts";
import type { Fleet, Work } from "../office/work.ts";
import type { TryEvent } from "../account/sign-in/sign-in-tries.ts";
import type { UsageQueries } from "../account/usage-queries.ts";
import type { ActivityQueries } from "../core/activity.ts";
import type { RequestLogQueries } from "../core/request-log.ts";
import type { Catalog } from "../core/catalog.ts";
import type { Clock } from "../core/clock.ts";
import type { ConversationBounds, ConversationRows } from "../core/conversations.ts";
import type { Log } from "../core/log.ts";
import type { Soon } from "../core/soon.ts";
import type { AccountId, Model, Ms } from "../core/types.ts";
import type { OperatorLine } from "./api/line.ts";
import type { OperatorAlert } from "./api/server.ts";
import type { NodeTest, OperatorModels, OperatorNode } from "./api/nodes.ts";
import type { AccountData } from "./account-data.ts";
import type { Asset } from "./assets.ts";
import type { BrowserAddresses } from "./browser-addresses.ts";
import type { PaymentProvider } from "./payment-provider.ts";
import type { BegunSignIns } from "./oidc/begun-sign-ins.ts";
import type { IdentityProvider } from "./oidc/identity-provider.ts";
import type { EntryRules } from "./oidc/person.ts";
import type { Backups, Configuration, Webhooks } from "./server-care.ts";

/** The result, or why it could not be done, in words. */
type NodeOutcome<Done> = Done | Readonly<{ refused: string }>;

export type NodesView = Readonly<{
  states(): Soon<readonly OperatorNode[]>;
  /** Tests it with a request for one token. */
  test(name: string): Promise<NodeOutcome<NodeTest>>;
  /** Every model with the nodes that have it, without its use. */
  models(): readonly Omit<OperatorModels["models"][number], "day">[];
  line(): Promise<OperatorLine>;
  /** Requests that wait for any of them. */
  readonly waiting: number;
  /** Tells whether a node has a model, even if that node is down. */
  had(): (model: Model) => boolean;
  /** Whether a node that serves it takes requests now. */
  takes(modelId: string): boolean;
}>;

export type ProviderParts = Readonly<{
  name: string;
  provider: IdentityProvider;
  rules: EntryRules;
  begun: BegunSignIns;
}>;

/** What several gateways know together, read once for all streams. Rejects with StoreUnavailable. */
export type Everywhere = Readonly<{
  numbers(): Promise<Readonly<{ heldTokens: number; openRequests: number; gateways: number }>>;
  /** Sign-in attempts that other gateways saw since the last call, and their age. */
  triesElsewhere(): Promise<readonly Readonly<{ event: TryEvent; agoMs: Ms }>[]>;
  tellTry(event: TryEvent): Promise<void>;
  /** A text for each session that changes whenever its account does; none if the session ended. */
  marks(seen: readonly Readonly<{ account: AccountId; session: number }>[]): Promise<ReadonlyMap<number, string>>;
}>;

export type ConsoleParts = Readonly<{
  office: Office;
  passwords: Passwords;
  work: Work & Readonly<{ fleet: Fleet }>;
  sessions: SessionLookup;
  usage: UsageQueries;
  activity: ActivityQueries;
  requestLog: RequestLogQueries;
  /** Null: the server keeps none. */
  conversations: Readonly<{
    conversations: ConversationRows;
    limits: Pick<ConversationBounds, "accountBytesMax" | "totalBytesMax">;
    hasRoom(): boolean;
  }> | null;
  /** Balance tokens reserved by open requests of all accounts. */
  reserved: Readonly<{ heldTokens: number }>;
  /** Null or absent: there is one gateway. */
  everywhere?: Everywhere | null;
  catalog: Catalog;
  nodes: NodesView;
  accountData: AccountData;
  configuration: Configuration;
  backups: Backups;
  webhooks: Webhooks;
  /** What an operator should look at; `latest` as it was some seconds ago. */
  alerts: Readonly<{ latest: readonly OperatorAlert[]; list(): Promise<readonly OperatorAlert[]> }>;
  /** Null: people request credit, and an operator approves it. */
  payment: PaymentProvider | null;
  assets: () => Promise<ReadonlyMap<string, Asset>>;
  clock: Clock;
  log: Log;
  /** {base_url} without a trailing slash; under https, cookies are for https only. */
  baseUrl: string;
  /** The same for examples; null: none is configured, and browsers use their own address. */
  samplesUrl: string | null;
  signUp: boolean;
  /** Whether people may sign in with a password. */
  passwordSignIn: boolean;
  /** Whether owners delete their accounts themselves, request it from an operator, or neither. */
  accountDeletion: "self" | "request" | "off";
  /** Null: there is none. */
  oidc: ProviderParts | null;
  addresses: BrowserAddresses;
  /** How long the token of a machine that signed in is valid, until the machine renews it. */
  machineTokens: TokenMaking;
  browsers: KnownBrowsers;
  version: string;
  /** True: answers come from the demo node. */
  demo: boolean;
}>;
