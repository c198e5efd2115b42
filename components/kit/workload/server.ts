import type { IncomingMessage } from 'node:http';
import { Agent } from 'node:https';
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

/** Milliseconds; less than the 65 s after which servers close, so that no request meets a connection that ends. */
const idleMs = 30_000;

/**
 * Connections over mutual TLS to the server of a SPIFFE id, kept for later requests. Requests must not name a
 * `checkServerIdentity` of their own: node:https keeps no connection that was judged by a request.
 */
export function keptConnections(expect: string): Agent {
  return new Agent({
    keepAlive: true,
    timeout: idleMs,
    // A resumed session would not present the certificate again.
    maxCachedSessions: 0,
    checkServerIdentity: (_host, certificate) => judgeServer(certificate, expect),
  });
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
