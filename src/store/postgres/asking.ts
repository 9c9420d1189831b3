// One statement at a time, for what reads and writes beside the ledger: its rows, as the statement names and casts them.
import type { Ms } from "../../core/types.ts";
import { call, type Statement } from "./connection.ts";
import { type Database, type Session, textParameter } from "./database.ts";

export type Value = string | number | null;
export type Send = <Row>(statement: Statement, ...values: readonly Value[]) => Promise<readonly Row[]>;

export const sendIn =
  (session: Session): Send =>
  async <Row>(statement: Statement, ...values: readonly Value[]) => {
    const given = values.map((value) => (typeof value === "string" ? textParameter(value) : value));
    const [rows] = await session.run([call(statement, ...given)]);
    return rows as readonly unknown[] as readonly Row[];
  };

/** The rows of one statement that reads. Rejects with StoreUnavailable. */
export const ask = <Row>(
  database: Database,
  statement: Statement,
  ...values: readonly Value[]
): Promise<readonly Row[]> => database.read((session) => sendIn(session)<Row>(statement, ...values));

/** What writes, in one transaction; it may run again from its start. Rejects with StoreUnavailable. */
export const change = <Result>(
  database: Database,
  work: (send: Send) => Promise<Result>,
  limitMs?: Ms,
): Promise<Result> =>
  database.transaction((session) => work(sendIn(session)), limitMs === undefined ? {} : { limitMs });

export const statement = (name: string, text: string): Statement => ({ name, text: text.trim() });
