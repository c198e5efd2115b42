import type { IncomingMessage } from 'node:http';
import type { PeerCertificate } from 'node:tls';
import { readSvid } from './svid.ts';

/** A `checkServerIdentity` for node:tls that verifies a server by its SPIFFE id only. */
export function judgeServer(certificate: PeerCertificate, expected: string): Error | undefined {
  try {
    const { id } = readSvid(certificate.raw);
    return id === expected ? undefined : new Error(`the server is ${id}, not ${expected}`);
  } catch (error) {
    return error instanceof Error ? error : new Error('the server certificate was refused');
  }
}

/** The whole body of an answer. Throws Error when it is larger than `limitBytes`. */
export async function readText(answer: IncomingMessage, limitBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > limitBytes) throw new Error('the answer is too long');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
