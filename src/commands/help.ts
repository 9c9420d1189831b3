// The text of `tollgate help`.
import { version } from "../../package.json" with { type: "json" };

export const helpText = `Tollgate ${version}: a gateway for language-model inference. One address, one key, three dialects.

tollgate serve [--config FILE] [--host H] [--port N] [--data DIR] [--node URL]... [--gguf FILE] [--demo]
               [--threads N]
    Serves on http://127.0.0.1:8400 with the data in ./data/var, unless told otherwise. Without nodes it looks for an
    engine on this machine, and without one it starts a demo node whose answers are synthetic.
    --gguf starts llama.cpp's llama-server with a model file and serves with that.
    --demo serves with the demo node alone, whatever engines run here and whatever nodes the configuration names.
    --threads lets so many cores serve clients, beside the one that keeps the books for them.
    SIGTERM stops it when the open requests have ended; SIGHUP reads the configuration again.

tollgate accounts create EMAIL [--plan PLAN] [--credit TOKENS] [--password P] [--operator]
    Plans are free, plus, standard and pro, or those of [[plans]]; without --plan it is the first.
tollgate accounts invite [--email EMAIL] [--plan PLAN] [--credit TOKENS] [--expires WHEN]
    A link that makes an account once: whoever opens it chooses address and password, or signs in with the provider.
    WHEN is a time such as 2026-12-31T12:00:00Z, or so many hours or days from now: 48h, 7d (unless told otherwise).
tollgate accounts list
tollgate accounts show EMAIL
tollgate accounts plan EMAIL PLAN
tollgate accounts credit EMAIL TOKENS [--reference R]
    The same reference is credited once, however often it comes.
tollgate accounts password EMAIL [--password P | --link [--expires WHEN]]
    Sets another password and signs all browsers out. Without --password it is the first line of standard input, or
    typed unseen; where that is empty, one is made and shown this once. With --link nothing is changed yet: a link is
    made by which the password can be set once, within a day unless told otherwise.
tollgate accounts disable EMAIL
    Its key is refused and its browsers are signed out at once; what runs may end, and the balance stays.
tollgate accounts enable EMAIL
    The account can be used again, with the same key and password.
tollgate accounts export EMAIL
    All that is kept of the account as JSON: usage, payments, sessions, stored responses, what operators did.
tollgate accounts delete EMAIL --yes
    Erases e-mail, key, sessions and stored responses; what was used and paid stays, without a name.
tollgate keys create EMAIL --name N [--limit-day TOKENS] [--limit-month TOKENS] [--expires ISO] [--models a,b]
                     [--addresses CIDR,CIDR] [--forwards-users [--limit-end-user-day TOKENS]]
    Another key of the account, which spends its balance within limits of its own (UTC); it is shown this once.
    --forwards-users is for a program that serves people: it is believed who asks, and usage knows them.
tollgate keys list EMAIL
tollgate keys limits EMAIL ID [--limit-day TOKENS] [--limit-month TOKENS] [--expires ISO] [--models a,b] [--addresses ...]
                     [--forwards-users | --no-forwards-users] [--limit-end-user-day TOKENS]
    Other limits of a key; those that are not named stay, and none lifts one: --limit-day none.
tollgate keys revoke EMAIL ID
    The key is void at once; what runs may end.
tollgate keys rotate EMAIL
    Of the key that every account has: the old one is void at once; the new one is shown this once.
tollgate end-users list EMAIL [--limit N]
    For whom programs asked by keys with --forwards-users, the last ones first.
tollgate end-users export EMAIL NAME
    All that is kept of one of them, as JSON.
tollgate end-users erase EMAIL NAME --yes
    Erases the name; what was used stays, without it.
tollgate usage EMAIL [--limit N]
    Replies, newest first.
tollgate requests [--account EMAIL] [--model M] [--node N] [--status 4xx] [--reason R] [--from T] [--to T] [--id ID]
                  [--wait-ms N] [--first-token-ms N] [--duration-ms N] [--tokens N] [--billed N] [--limit N] [--follow]
    Everything that was asked, newest first, also what was refused or failed; --reason served or failed for the one or
    the other. Numbers are what there is at least. --follow shows what comes from now on, until it is interrupted.

tollgate nodes              the inference nodes: how they are, since when, and what is wrong
tollgate nodes drain NAME   the node gets no new requests, and those that run there end; [--wait] until they have
tollgate nodes resume NAME  it gets requests again
tollgate gateways           who shares the ledger's PostgreSQL: alive or gone, version, configuration, shares of the nodes
tollgate models             what the nodes offer, what is served of it, under which name and at which price, what no node has
tollgate models suggest     prints the [[models]] for what the nodes list, to be pasted into the configuration
tollgate webhooks test NAME posts a notice to a webhook of the configuration
tollgate reload             has the running server apply its changed configuration, and says what needs a restart
tollgate health             exit code 0 where the server of the data folder runs and takes requests, else 1
tollgate search QUERY       what the configured web search finds, as a model reads it; [--results N]
tollgate search index       brings the index of the search folder up to date and says what is in it
tollgate backup FILE        copies the database, also while it is in use, and checks the copy
tollgate restore FILE       puts a backup in the place of a stopped server's database, which is kept under another name;
                            checks it first and refuses one that is damaged or whose books contradict themselves
                            (those not with --accept-violations)
tollgate move --to URL      carries the books of a stopped server into an empty PostgreSQL database, for several gateways, and
                            closes the folder; --from URL --to-data DIR carries them back;
                            the URL env is TOLLGATE_DATABASE_URL
tollgate check              checks the configuration and asks each node; exit code 1 if something is wrong
tollgate doctor             looks at disk, clock, limits, database, configuration and nodes; exit code 1 if one is wrong
tollgate check-answers      what a server starts to check answers against JSON Schemas; of no use by itself
tollgate pdf-text           writes the text of a PDF on standard input, as a model is given it
tollgate help, help config, --version
    help config lists every key of the configuration file.

Commands take --data DIR, --config FILE and --json; serve has no --json, check-answers and pdf-text have no flags at all.
They work on a running and on a stopped server alike, but reload, health, nodes drain and nodes resume on a running one
alone, restore and move on a stopped.
Environment: TOLLGATE_CONFIG, TOLLGATE_HOST, TOLLGATE_PORT (or PORT), TOLLGATE_DATA, TOLLGATE_LOG_LEVEL and
TOLLGATE_LOG_FORMAT; flags win over it, it wins over the file.
Exit codes: 0 done, 1 not done, 2 the command line is wrong.`;
