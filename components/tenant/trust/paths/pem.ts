const BLOCK = /-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]*)-----END CERTIFICATE-----/g;

/**
 * The certificates of PEM text (RFC 7468), in its order; text around the blocks is passed over. Undefined for text without
 * one, with blocks of another label, or with a block that is no base64.
 */
export function parsePem(text: string): readonly Uint8Array[] | undefined {
  const blocks = [...text.matchAll(BLOCK)].map(([, body = '']) => decode(body));
  if (text.replaceAll(BLOCK, '').includes('-----')) return undefined;
  const found = blocks.flatMap((block) => block ?? []);
  return found.length > 0 && found.length === blocks.length ? found : undefined;
}

function decode(body: string): Uint8Array | undefined {
  const text = body.replaceAll(/\s/g, '');
  const bytes = Buffer.from(text, 'base64');
  return bytes.length > 0 && bytes.toString('base64') === text ? bytes : undefined;
}
