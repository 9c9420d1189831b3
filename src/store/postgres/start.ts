// Opens the database of the configuration, and says in one sentence what is wrong where that cannot be.
import { CommandError } from "../../core/expected-error.ts";
import { PostgresServer, type Server, StatementError } from "./connection.ts";
import { migrate } from "./migrations.ts";
import { limited, type Pace, systemPace } from "./pace.ts";

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

async function prepare(server: Server, pace: Pace = systemPace): Promise<void> {
  const connection = await limited(pace, server.connect(), (late) => late.close());
  try {
    await migrate(connection);
  } finally {
    connection.close();
  }
}

function reasonOf(url: string, { state, message }: StatementError): string {
  const { hostname, port, pathname, username } = new URL(url);
  const host = `${hostname}:${port === "" ? "5432" : port}`;
  const database = decodeURIComponent(pathname.slice(1));
  const user = username === "" ? "a user without a name" : `"${decodeURIComponent(username)}"`;
  const name = `the database "${database}" on ${host}`;
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
