import { z } from 'zod';
import { findRegisterId, findTxId } from '#core/ledger/register-id.ts';
import type { Downloads } from '#kit/files/downloads.ts';
import { anyType, fileHeaders } from '#kit/files/headers.ts';
import { type App, addRoute, answer, decimal, media } from '#kit/http/http.ts';
import { refusal, refusals, walletRefusals } from '../../errors.ts';
import { identifier } from '../../wallets/records/schemas.ts';
import { type OpenFileDeps, openFile } from './open-file.ts';

export interface FileDeps extends OpenFileDeps {
  readonly downloads: Downloads;
}

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
      return answer(200, content, fileHeaders(file));
    },
  });
}
