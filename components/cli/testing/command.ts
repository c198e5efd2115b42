import { Readable } from 'node:stream';
import { createVerifier, nodeEd25519 } from '#core/crypto/verify.ts';
import { run } from '../run.ts';

function pieces(bytes: Buffer, size: number): Readable {
  const count = Math.ceil(bytes.length / size);
  return Readable.from(Array.from({ length: count }, (_, n) => bytes.subarray(n * size, (n + 1) * size)));
}

/** Output of the program for a file with that content. */
export async function command(content: string | Error, args = ['verify', 'FILE'], pieceBytes = 1000) {
  const said = { out: '', err: '' };
  const code = await run(args, {
    verifier: createVerifier(nodeEd25519()),
    read: async function* () {
      if (typeof content !== 'string') throw content;
      yield* pieces(Buffer.from(content), pieceBytes);
    },
    print: (text) => {
      said.out += text;
    },
    complain: (text) => {
      said.err += text;
    },
  });
  return { code, ...said };
}
