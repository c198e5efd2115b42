import { stderr, stdout } from 'node:process';
import { archives, buildSpire, NotToBeHad } from './build.ts';

/** npm run spire-images: fetches and builds the programs of SPIRE that the journeys on a cluster need. */
try {
  await buildSpire((line) => stdout.write(`${line}\n`));
  stdout.write(`${archives.join('\n')}\n`);
} catch (error) {
  if (!(error instanceof NotToBeHad)) throw error;
  stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
