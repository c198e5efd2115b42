import { imageNames, importAs, importImages, loadCommand } from './images.ts';
import { nextVersion, twice } from './versions.ts';

/**
 * Imports every archive of dist/images by the command in LOAD, and two of them in the next version as well; without LOAD all
 * are there already.
 */
export async function setup(): Promise<void> {
  const command = loadCommand();
  if (command === undefined) return;
  await importImages(command, imageNames());
  await importAs(nextVersion, command, twice);
}
