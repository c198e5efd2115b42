import { isUtf8 } from 'node:buffer';
import { readJws } from '../jws/read.ts';
import { selectAnchors } from '../values/anchors.ts';
import { sha256 } from '../values/certificates.ts';
import { malformed } from '../values/fault.ts';
import type { ReadList } from '../values/list.ts';
import type { Pin } from '../values/signers.ts';
import { readXml } from '../xml/read.ts';

const byteOrderMark = '\uFEFF';
const compactJws = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/;

/**
 * Verifies and reads a trust list, XML or compact JWS: its content tells which, never its name or media type.
 * @throws ListFault
 */
export async function readList(document: Uint8Array, pin: Pin): Promise<ReadList> {
  if (!isUtf8(document)) throw malformed('the list is not UTF-8');
  const text = textOf(document);
  const { content, signer } = await readText(text, pin);
  const { services, ...scheme } = content;
  return { ...scheme, signer, ...selectAnchors(services, pin.nowMs), documentSha256: sha256(document) };
}

function textOf(document: Uint8Array): string {
  const text = Buffer.from(document.buffer, document.byteOffset, document.byteLength).toString('utf8');
  return text.startsWith(byteOrderMark) ? text.slice(1) : text;
}

function readText(text: string, pin: Pin): ReturnType<typeof readXml> {
  if (/^\s*</.test(text)) return readXml(text, pin);
  const token = text.trim();
  if (compactJws.test(token)) return readJws(token, pin);
  throw malformed('the document is neither XML nor a compact JWS');
}
