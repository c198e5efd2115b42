import {
  DER,
  type DerNode,
  derBoolean,
  derContent,
  derOid,
  derSequence,
  expectDer,
} from '../encoding/der.ts';
import { AppError } from '../errors/errors.ts';

/** One extension; its value is DER that is read by the rules of its identifier. */
interface Extension {
  readonly isCritical: boolean;
  readonly value: Uint8Array;
}

/** Extensions by object identifier. */
export type ExtensionList = ReadonlyMap<string, Extension>;

function refuse(message: string): never {
  throw new AppError('invalid', 'DER_MALFORMED', `Extensions: ${message}`);
}

/**
 * Reads the Extensions of a certificate, a list of revoked certificates or one of its entries (RFC 5280 section 4.1): at
 * least one, each once.
 * @throws AppError invalid DER_MALFORMED
 */
export function readExtensions(node: DerNode | undefined): ExtensionList {
  const extensions = new Map<string, Extension>();
  for (const each of derSequence(node)) {
    const parts = derSequence(each);
    const [identifier, second, third] = parts;
    const hasCritical = second?.tag === DER.boolean;
    const value = expectDer(hasCritical ? third : second, DER.octetString);
    if (parts.length !== (hasCritical ? 3 : 2)) refuse('an extension has other members');
    const oid = derOid(identifier);
    if (extensions.has(oid)) refuse('an extension occurs twice');
    extensions.set(oid, { isCritical: hasCritical && derBoolean(second), value: derContent(value) });
  }
  if (extensions.size === 0) refuse('there are no extensions in their place');
  return extensions;
}
