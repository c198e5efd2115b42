#!/usr/bin/env node
import { createReadStream } from 'node:fs';
import process from 'node:process';
import { createVerifier } from '#core/crypto/verify.ts';
import { loadEd25519 } from '#kit/crypto/ed25519.ts';
import { cliError } from './errors.ts';
import { run } from './run.ts';

async function* read(path: string): AsyncGenerator<Uint8Array> {
  try {
    yield* path === '-' ? process.stdin : createReadStream(path, { highWaterMark: 1024 * 1024 });
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    throw cliError('FILE_UNREADABLE', text, { cause: error });
  }
}

process.exitCode = await run(process.argv.slice(2), {
  verifier: createVerifier(loadEd25519('auto').backend),
  read,
  print: (text) => void process.stdout.write(text),
  complain: (text) => void process.stderr.write(text),
});
