import type { FileReference } from '#core/blueprint/payload/files.ts';

/** The media type of bytes of any kind. */
export const anyType = 'application/octet-stream';
/** Type and subtype, without parameters (RFC 9110, section 8.3.1). */
const mediaType = /^[A-Za-z0-9!#$&^_.+-]{1,127}\/[A-Za-z0-9!#$&^_.+-]{1,127}$/;

/** Headers by which no browser shows a file in the origin of the service, whatever type its sender gave it. */
export function fileHeaders({ fileName, contentType, size }: FileReference) {
  return {
    'content-type': mediaType.test(contentType) ? contentType : anyType,
    'content-length': String(size),
    'content-disposition': `attachment; filename*=UTF-8''${extValue(fileName)}`,
    'content-security-policy': "default-src 'none'; sandbox",
    'x-content-type-options': 'nosniff',
  };
}

/** The value of an extended parameter (RFC 8187, section 3.2.1). */
function extValue(text: string): string {
  return encodeURIComponent(text.toWellFormed()).replaceAll(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
