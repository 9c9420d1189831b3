// Opens the database of the configuration, and says in one sentence what is wrong where that cannot be.
import { CommandError } from "../../core/expected-error.ts";
import { type Connection, PostgresServer, type Server, StatementError } from "./connection.ts";
import { databaseName, partsOf } from "./place-of-url.ts";
import { migrate } from "./migrations.ts";
import { limited, type Pace, systemPace } from "./pace.ts";
import { type TablesState, tablesState } from "./tables-state.ts";

/** Makes or extends the tables. Throws CommandError, which names the database without user and password. */
export async function openServer(url: string, pace: Pace = systemPace): Promise<Server> {
  const server = new PostgresServer(url);
  await inOneSentence(url, () => prepare(server, pace));
  return server;
}

/** What fails as the database says it is a CommandError for people. */
export async function inOneSentence<Result>(url: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (thrown) {
    if (!(thrown instanceof StatementError)) throw thrown;
    throw new CommandError(reasonOf(url, thrown), { cause: thrown });
  }
}

/** What the tables are; none are made, and nothing is changed. Throws CommandError as `openServer`. */
export async function lookAtServer(
  url: string,
  pace: Pace = systemPace,
): Promise<Readonly<{ connection: Connection; state: TablesState }>> {
  return inOneSentence(url, async () => {
    const connection = await limited(pace, new PostgresServer(url).connect(), (late) => late.close());
    try {
      return { connection, state: await tablesState(connection, pace) };
    } catch (thrown) {
      connection.close();
      throw thrown;
    }
  });
}

async function prepare(server: Server, pace: Pace = systemPace): Promise<void> {
  const connection = await limited(pace, server.connect(), (late) => late.close());
  try {
    await migrate(connection, undefined, pace);
  } finally {
    connection.close();
  }
}

function reasonOf(url: string, { state, message }: StatementError): string {
  const { database, host, username } = partsOf(url);
  const user = username === "" ? "a user without a name" : `"${decodeURIComponent(username)}"`;
  const name = databaseName(url);
  switch (state) {
    case "28P01":
    case "28000":
      return `PostgreSQL on ${host} does not let ${user} in: ${message}`;
    case "3D000":
      return `there is no database "${database}" on ${host}: make one with createdb`;
    case "25006":
      return `${name} takes no writes: ${message}`;
    case "42501":
      return `${user} may not make tables in ${name}: ${message}`;
    case "53300":
      return `PostgreSQL on ${host} has no connection left: ${message}`;
    case "53100":
      return `the disk of ${name} is full: ${message}`;
    case "57P03":
      return `PostgreSQL on ${host} is starting up or stopping; try again: ${message}`;
    case null:
      return `${name} cannot be reached: ${message}`;
    default:
      return `${name} cannot be used: ${message}`;
  }
}
