import { afterAll, beforeAll, test } from "@jest/globals";
import { playStory } from "@runtime-cloud/runtime-cloud-host/story/story";
import { deploy, type TestDeployment } from "../_support/deployment.ts";

const SERVICES = ["runtime-environment", "execution-capacity", "iac-provisioning"] as const;
const START_MS = 60_000;
const STORY_MS = 150_000;

let deployment: TestDeployment;
const told: string[] = [];

beforeAll(async () => {
  deployment = await deploy(SERVICES, (line) => told.push(line));
}, START_MS);
afterAll(() => deployment.close(), START_MS);

test(
  "three service processes play the whole loop, each step as the story promises",
  async () => {
    try {
      await playStory(deployment.stage);
    } catch (error) {
      throw new Error(`${told.join("\n")}\n${String(error)}`, { cause: error });
    }
  },
  STORY_MS,
);
