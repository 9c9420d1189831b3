// Changes the configuration file for operators: checked as at a start, applied like a reload, with the versions before kept
// beside the ledger. The file stays the truth: whoever edited it by hand meanwhile is not overwritten.
import { isUtf8 } from "node:buffer";
import {
  accessSync,
  chmodSync,
  chownSync,
  constants,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { checkedCatalogOf } from "../config/configured-catalog.ts";
import { type Config, fileTables, type FileTableOfKeys, readConfig } from "../config/config.ts";
import { ConfigError, type Environment } from "../config/faults.ts";
import { changedFile, isSecret, remoteTables, rowName, rowsOf, withoutSecrets } from "../config/file-changes.ts";
import type { ConfigFlags } from "../config/option.ts";
import { tomlLiteral, type TomlValues } from "../config/toml-edit.ts";
import type { Clock } from "../core/clock.ts";
import { formatPath, type SchemaError } from "../core/schema-errors.ts";
import { CommandError, isExpected } from "../core/expected-error.ts";
import { lineDiff } from "../core/line-diff.ts";
import { inspectNodes } from "../nodes/inspect.ts";
import {
  type ConfigEdit,
  type ConfigEdited,
  type ConfigEditing,
  ConfigIsOther,
  ConfigIsWrong,
  type ConfigKey,
  type ConfigShown,
  type ConfigUndo,
  type Editor,
} from "../office/config-editing.ts";
import { codeOf } from "../store/folder/folder-faults.ts";
import { readMark, writeWhole } from "../store/folder/whole-file.ts";
import { missingAmong } from "./fleet/missing-models.ts";
import { missingLines } from "./fleet/model-report.ts";
import type { Reloader } from "./reload.ts";

const versionsKept = 20;
const fileMaxBytes = 1 << 20;

/** `before`: the file's text, until its hash was `hash`. */
type Version = Readonly<{ at: string; by: string; what: readonly string[]; before: string; hash: string }>;

export type EditorParts = Readonly<{
  config: Config;
  flags: ConfigFlags;
  environment: Environment;
  reloader: Pick<Reloader, "rehearse" | "applyAndLog">;
  clock: Clock;
}>;

const hashOf = (text: string): string => new Bun.CryptoHasher("sha256").update(text).digest("hex").slice(0, 16);

export class ConfigEditor implements ConfigEditing {
  readonly #parts: EditorParts;
  readonly #versionsFile: string;
  /** One at a time. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(parts: EditorParts) {
    this.#parts = parts;
    this.#versionsFile = resolve(parts.config.dataFolder, "config-versions.json");
  }

  async show(): Promise<ConfigShown> {
    const { file, databaseUrl, gateway } = this.#parts.config;
    let problem = whyFixed(file);
    let text = "";
    let values: TomlValues = {};
    try {
      text = file === null ? "" : readFileSync(file, "utf8");
      values = Bun.TOML.parse(text) as TomlValues;
    } catch (error) {
      problem ??= (error as Error).message;
    }
    const tables = fileTables.filter(({ name }) => remoteTables.has(name));
    const versions = this.#versions();
    return {
      file,
      gateway: databaseUrl === null ? null : gateway,
      hash: hashOf(text),
      problem,
      tables: tables.map((table) => ({
        name: table.name,
        is_list: table.isList,
        row_key: table.rowKey,
        keys: Object.entries(table.keys).map(([name, { about, otherwise, isRequired, schema }]): ConfigKey => {
          const ofMachine = schema["ofMachine"] === true ? "only on the server's machine" : null;
          const fixed = this.#winner(table, name) ?? ofMachine;
          return { name, about, otherwise, required: isRequired, schema, secret: isSecret(schema), fixed };
        }),
        rows: rowsOf(values, table).map((row, at) => ({
          name: table.isList ? rowName(table, row, at) : "",
          values: Object.fromEntries(
            Object.entries(row).map(([key, value]) => {
              const known = table.keys[key];
              return [key, known === undefined || isSecret(known.schema) ? "" : tomlLiteral(value)];
            }),
          ),
        })),
      })),
      changes: versions.map(({ at, by, what }) => ({ at, by, what: [...what] })).toReversed(),
      can_undo: problem === null && versions.at(-1)?.hash === hashOf(text),
    };
  }

  edit({ hash, dry_run, ...changes }: ConfigEdit, by: Editor): Promise<ConfigEdited> {
    return this.#alone(async () => {
      const before = this.#read(hash);
      const { text, what, faults } = changedFile(before, changes, by.isRemote);
      if (faults.length > 0) throw this.#withOthers(faults, text);
      const edited = await this.#put(before, text, what, dry_run === true);
      if (dry_run === true || text === before) return edited;
      const version = {
        at: new Date(this.#parts.clock.wall()).toISOString(),
        by: by.name,
        what,
        before,
        hash: edited.hash,
      };
      try {
        this.#keep([...this.#versions(), version].slice(-versionsKept));
      } catch (error) {
        // It is in force, whatever the data folder's disk does.
        return { ...edited, warnings: [`it cannot be undone here: ${(error as Error).message}`] };
      }
      return edited;
    });
  }

  undo({ hash, dry_run }: ConfigUndo): Promise<ConfigEdited> {
    return this.#alone(async () => {
      const before = this.#read(hash);
      const versions = this.#versions();
      const last = versions.pop();
      if (last === undefined) throw new CommandError("nothing was changed here that could be undone");
      if (last.hash !== hashOf(before))
        throw new ConfigIsOther("the file was edited since the last change here: undo it there");
      const edited = await this.#put(
        before,
        last.before,
        last.what.map((each) => `undone: ${each}`),
        dry_run === true,
      );
      if (dry_run !== true) this.#keep(versions);
      return edited;
    });
  }

  #alone<Done>(act: () => Promise<Done>): Promise<Done> {
    const done = this.#last.then(act).catch((thrown: unknown) => {
      throw thrown instanceof ConfigError ? new ConfigIsWrong(thrown.message, thrown.places) : thrown;
    });
    this.#last = done.catch(() => {}); // whoever asked gets the error
    return done;
  }

  /** The text of the file. Throws where it cannot be changed, or is no longer the one with this hash. */
  #read(hash: string | undefined): string {
    const { file } = this.#parts.config;
    const problem = whyFixed(file);
    if (problem !== null) throw new CommandError(problem);
    const bytes = readFileSync(file!);
    if (!isUtf8(bytes)) throw new CommandError(`${file} is not in UTF-8: edit the file itself`);
    const text = bytes.toString();
    // Editors truncate a file before they write it.
    if (text === "" && !this.#parts.config.isBlank) throw new ConfigIsOther(`${file} is empty, as while it is written`);
    if (hash === undefined || hash === hashOf(text)) return text;
    const last = this.#versions().at(-1);
    const whose =
      last?.hash === hashOf(text) ? `${last.by} changed it (${last.what.join(", ")})` : "somebody edited it";
    throw new ConfigIsOther(`${file} is another one than you saw: ${whose}. Nothing was done: look at it again`);
  }

  #config(toml: string): Config {
    const { config, flags, environment } = this.#parts;
    return readConfig(config.file, toml, flags, environment);
  }

  async #put(before: string, text: string, what: readonly string[], isRehearsal: boolean): Promise<ConfigEdited> {
    const { config, reloader } = this.#parts;
    const file = config.file!;
    const next = this.#config(text);
    const { applied, needsRestart } = await reloader.rehearse(next);
    const edited = {
      file,
      hash: hashOf(text),
      what: [...what],
      diff: lineDiff(withoutSecrets(before), withoutSecrets(text)),
      applied: [...applied],
      needs_restart: [...needsRestart],
      warnings: isRehearsal ? await this.#warnings(this.#config(before), next) : [],
      dry_run: isRehearsal,
    };
    if (isRehearsal || text === before) return edited;
    if (this.#read(undefined) !== before)
      throw new ConfigIsOther(`${file} was edited at this very moment: look at it again`);
    replace(file, text);
    let isApplied = false;
    try {
      const outcome = await reloader.applyAndLog();
      if ("refused" in outcome) throw new CommandError(outcome.refused);
      isApplied = true;
      return { ...edited, applied: [...outcome.applied], needs_restart: [...outcome.needsRestart] };
    } finally {
      if (!isApplied && readFileSync(file, "utf8") === text) replace(file, before);
    }
  }

  /** With what else is wrong. */
  #withOthers(faults: readonly SchemaError[], text: string): ConfigError {
    const lines = faults.map(({ path, problem }) => `${formatPath(path)} ${problem}`);
    try {
      this.#config(text);
      return new ConfigError(lines.join("\n"), false, faults);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      return new ConfigError([...lines, error.message].join("\n"), false, [...faults, ...error.places]);
    }
  }

  /** As `tollgate check` tells them, of nodes that are others than before. */
  async #warnings(before: Config, next: Config): Promise<string[]> {
    const { models } = await checkedCatalogOf(next);
    const inspections = await inspectNodes(next.nodes, models, this.#parts.clock);
    const had = new Set(before.nodes.map((node) => JSON.stringify(node)));
    return [
      ...inspections.flatMap(({ name, problem, warning }, at) => {
        const found = problem ?? warning;
        return found === null || had.has(JSON.stringify(next.nodes[at])) ? [] : [`node ${name}: ${found}`];
      }),
      ...missingLines(missingAmong(inspections, { models })),
    ];
  }

  /** What wins over the file, in words; null: nothing does. */
  #winner({ name, options }: FileTableOfKeys, key: string): string | null {
    const { flags, environment } = this.#parts;
    const { node = [], gguf, demo } = flags;
    if (name === "nodes" && (node.length > 0 || gguf !== undefined || demo === true)) {
      return "flags of the start say which nodes there are";
    }
    const { flag = null, variables = [] } = options.find(({ keys }) => key in keys) ?? {};
    const given = [
      ...(flag !== null && flags[flag as keyof ConfigFlags] !== undefined ? [`--${flag}`] : []),
      ...variables.filter((variable) => (environment[variable] ?? "") !== ""),
    ];
    return given.length === 0 ? null : `${given[0]} wins over the file`;
  }

  #versions(): Version[] {
    const { versions = [] } = readMark<{ versions: Version[] }>(this.#versionsFile) ?? {};
    return versions;
  }

  #keep(versions: readonly Version[]): void {
    writeWhole(this.#versionsFile, new TextEncoder().encode(JSON.stringify({ versions })));
  }
}

/** Why a file cannot be changed here; null: it can. */
function whyFixed(file: string | null): string | null {
  if (file === null) return "there is no configuration file: start the server with --config FILE";
  try {
    const found = statSync(file);
    if (!found.isFile()) return `${file} is no file that can be changed`;
    if (found.size > fileMaxBytes) return `${file} is too large to be changed here`;
    accessSync(file, constants.R_OK | constants.W_OK);
    return null;
  } catch (error) {
    const code = codeOf(error);
    const why =
      code === "EROFS" ? "it stands on a read-only disk" : code === "EACCES" ? "the server may not write it" : code;
    return `${file} is changed where it is made, and not here: ${why}`;
  }
}

/** As a whole or not at all, with its owner and rights. */
function replace(file: string, text: string): void {
  const real = realpathSync(file);
  const unfinished = join(dirname(real), `.${basename(real)}.${crypto.randomUUID()}`);
  try {
    try {
      const { mode, uid, gid } = statSync(real);
      writeFileSync(unfinished, text, { mode: 0o600, flush: true, flag: "wx" });
      chownSync(unfinished, uid, gid);
      chmodSync(unfinished, mode);
      renameSync(unfinished, real);
    } catch (error) {
      rmSync(unfinished, { force: true });
      // A file that is mounted by itself, or whose folder is another's, is written where it is.
      if (!["EACCES", "EPERM", "EBUSY", "EXDEV", "EROFS"].includes(codeOf(error) ?? "")) throw error;
      const before = readFileSync(real);
      try {
        writeFileSync(real, text, { flush: true });
      } catch (full) {
        writeFileSync(real, before, { flush: true }); // there was room for it
        throw full;
      }
    }
  } catch (error) {
    if (isExpected(error)) throw error;
    throw new CommandError(`${file} cannot be written: ${(error as Error).message}`);
  }
}
