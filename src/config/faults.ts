// What is wrong with a configuration, collected, so that one start reports every fault; and where a value stands in it.
import { formatPath, type SchemaError, show } from "../core/schema-errors.ts";
import { type Lines, linesOf, lineOfSyntaxError } from "./toml-lines.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

type Path = SchemaError["path"];

/** The configuration is wrong; the message has one line for each fault. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";

  constructor(
    message: string,
    /** Nothing but flags is wrong. */
    readonly isOfCommandLine = false,
    readonly places: readonly SchemaError[] = [],
  ) {
    super(message);
  }
}

export class Faults {
  readonly #lines: string[] = [];
  readonly #places: SchemaError[] = [];
  #ofFlags = 0;
  readonly #file: string | null;
  readonly #toml: string;
  #lineOf: Lines | null = null;

  constructor(file: string | null, toml: string) {
    this.#file = file;
    this.#toml = toml;
  }

  /** A fault of a variable or the whole file. */
  add(line: string): void {
    this.#lines.push(line);
  }

  addOfFlag(line: string): void {
    this.#ofFlags += 1;
    this.add(line);
  }

  at(path: Path, problem: string): void {
    this.#places.push({ path, problem });
    // An item of a list in one line has the line of the list.
    this.#lineOf ??= linesOf(this.#toml);
    const line = this.#lineOf(path) ?? this.#lineOf(path.slice(0, -1));
    this.add(`${this.#file ?? "the configuration"}${line === null ? "" : `:${line}`}: ${formatPath(path)} ${problem}`);
  }

  /** Whether something was found there, or in it. */
  has(path: Path): boolean {
    return this.#places.some((each) => path.every((step, at) => each.path[at] === step));
  }

  syntax(message: string): never {
    const line = lineOfSyntaxError(this.#toml, message);
    throw new ConfigError(`${this.#file}${line === null ? "" : `:${line}`}: ${message}`);
  }

  throwIfAny(): void {
    const { length } = this.#lines;
    if (length > 0) throw new ConfigError(this.#lines.join("\n"), this.#ofFlags === length, this.#places);
  }
}

/** What reading one file shares. */
export type ConfigReading = Readonly<{
  faults: Faults;
  environment: Environment;
  /** Paths in the file are relative to it. */
  folder: string;
  /** Secrets that were read. */
  keys: Set<string>;
}>;

/** Where a value stands. */
export class FaultPlace {
  readonly reading: ConfigReading;
  readonly #path: Path;

  constructor(reading: ConfigReading, path: Path) {
    this.reading = reading;
    this.#path = path;
  }

  /** Of what stands in it. */
  at(...steps: readonly (string | number)[]): FaultPlace {
    return new FaultPlace(this.reading, [...this.#path, ...steps]);
  }

  /** Whether one of these keys was found to be wrong. */
  hasFaultAt(keys: object): boolean {
    return Object.keys(keys).some((key) => this.reading.faults.has([...this.#path, key]));
  }

  /** `problem` is read after the path: "must be ...", "is missing: ...". */
  fault(problem: string): void {
    this.reading.faults.at(this.#path, problem);
  }

  /** That the value is something else; `expected` as in a schema's description. */
  mustBe(expected: string, value: unknown): void {
    this.fault(`must be ${expected}, is ${show(value)}`);
  }
}
