import { z } from 'zod';
import type { FileReference } from '#core/blueprint/payload/files.ts';
import { findRegisterId, findTxId } from '#core/ledger/register-id.ts';
import { type App, addRoute, answer, decimal, media } from '#kit/http/http.ts';
import { refusal, refusals, walletRefusals } from '../../errors.ts';
import { identifier } from '../../wallets/records/schemas.ts';
import type { Downloads } from './downloads.ts';
import { type OpenFileDeps, openFile } from './open-file.ts';

export interface FileDeps extends OpenFileDeps {
  readonly downloads: Downloads;
}

const anyType = 'application/octet-stream';
/** Type and subtype, without parameters (RFC 9110, section 8.3.1). */
const mediaType = /^[A-Za-z0-9!#$&^_.+-]{1,127}\/[A-Za-z0-9!#$&^_.+-]{1,127}$/;

const fileQuery = z.object({
  registerId: z.string().max(64),
  actionTxId: z.string().max(128),
  fieldName: z.string().min(1).max(512).describe('Name of the field, or a JSON Pointer to it.'),
  fileIndex: decimal({ min: 0, max: 999 }).default(0).describe('Position in a list of files.'),
});

export function mountFileRoutes(app: App, deps: FileDeps): void {
  addRoute(app, {
    method: 'GET',
    path: '/api/v1/wallets/:address/files/download',
    operationId: 'getFile',
    tag: 'Wallets',
    summary: 'Download a file from the content of an action',
    description:
      'The wallet opens the content that is addressed to it and verifies the file. Of content that is not encrypted, ' +
      'the wallet is the sender or a recipient of the transaction. When a part of the file is wrong ' +
      'after the answer has begun, the connection is aborted: a complete answer is a verified file.',
    policy: 'RequireAuthenticated',
    rateLimit: 'Strict',
    params: z.object({ address: identifier.describe('Address or id of the wallet that reads.') }),
    query: fileQuery,
    answers: { 200: media(anyType, 'The file, under its own content type.') },
    refusals: [
      ...walletRefusals,
      ...refusals(
        'WALLET_LOCKED',
        'WALLET_DELETED',
        'TX_NOT_FOUND',
        'NOT_A_RECIPIENT',
        'DECRYPT_FAILED',
        'FILE_NOT_FOUND',
      ),
      ...refusals(
        'FILE_PURGED',
        'FILE_CORRUPT',
        'FILES_UNAVAILABLE',
        'REGISTER_UNAVAILABLE',
        'DOWNLOAD_LIMIT',
      ),
    ],
    // HEAD would cost as much as the first chunk.
    withoutHead: true,
    noStore: true,
    handle: async ({ caller, params, query }) => {
      const registerId = findRegisterId(query.registerId);
      const txId = findTxId(query.actionTxId);
      if (registerId === undefined || txId === undefined) throw refusal('TX_NOT_FOUND');
      const place = {
        wallet: params.address,
        registerId,
        txId,
        field: query.fieldName,
        index: query.fileIndex,
      };
      const file = await openFile(deps, caller, place);
      const content = await deps.downloads.open({ file, registerId, subject: caller.subject });
      return answer(200, content, headersOf(file));
    },
  });
}

/** Headers by which no browser shows a file in the origin of the service, whatever type its sender gave it. */
function headersOf({ fileName, contentType, size }: FileReference) {
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
