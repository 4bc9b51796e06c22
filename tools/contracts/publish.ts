import { breaking } from "./breaking.ts";
import { readOwnPackage } from "./manifest.ts";
import { isNewer } from "./newer.ts";
import { pack } from "./pack.ts";
import { lastPublished, markPublished } from "./published.ts";

/** A publication that is refused; the message says why and how to go on. */
export class PublicationRefused extends Error {
  override readonly name = "PublicationRefused";
}

/**
 * Packs the contracts into `out` and takes them for the published ones, which later ones may not break. Throws
 * PublicationRefused when they break what was published, or when this version, or a later one, was published already.
 */
export async function publish(root: string, out: string): Promise<{ tarball: string; image: string }> {
  const { name, version } = await readOwnPackage(root);
  const last = await lastPublished(root);
  if (last && !isNewer(version, last.version)) {
    throw new PublicationRefused(
      `Version ${last.version} is published, and libs/contracts/package.json says ${version}: raise it by ` +
        `\`npm version minor -w ${name} --no-git-tag-version\``,
    );
  }
  const broken = last && (await breaking(root, last));
  if (broken !== undefined) throw new PublicationRefused(broken);
  const tarball = await pack(root, out);
  const { image } = await markPublished(root, version);
  return { tarball, image };
}
