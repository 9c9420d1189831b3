// The official JavaScript client in its current major version, which is a development dependency of the project.
import * as openai from "openai";
import { longForm } from "../fixtures/optional.ts";
import { describeOpenAI } from "./openai-suite.ts";

describeOpenAI("openai 7", openai, longForm);
