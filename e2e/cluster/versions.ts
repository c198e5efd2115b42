/** Tag of the images of the installation, and version of its validators. */
export const thisVersion = process.env['IMAGE_TAG'] ?? '0.1.0';

/** The next one: the images of `twice` are there by this tag too. */
export const nextVersion = thisVersion.replace(/\d+$/, (patch) => String(Number(patch) + 1));

/** Images that are there in two versions. */
export const twice = ['validator', 'operator'];

/** Reference of an image. */
export function imageOf(name: string, version: string): string {
  return `chancery.local/${name}:${version}`;
}
