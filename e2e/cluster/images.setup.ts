import { imageNames, importAs, importImages, loadCommand } from './images.ts';
import { nextVersion, twice } from './versions.ts';

/**
 * Imports every archive of dist/images with the command in LOAD, and two of them in the next version too. Without LOAD all
 * images must exist.
 */
export async function setup(): Promise<void> {
  const command = loadCommand();
  if (command === undefined) return;
  await importImages(command, imageNames());
  await importAs(nextVersion, command, twice);
}
