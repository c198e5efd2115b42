import { z } from 'zod';
import { type FileReference, findFileOfChunk } from '#core/blueprint/payload/files.ts';
import { findRegisterId, findTxId } from '#core/ledger/register-id.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import type { Downloads } from '#kit/files/downloads.ts';
import { anyType, fileHeaders } from '#kit/files/headers.ts';
import { type App, addRoute, answer, bearerOf, media } from '#kit/http/http.ts';
import type { BlueprintDatabase } from '../database/schema.ts';
import type { Subject } from '../definitions/publications/visibility.ts';
import { refusal, refusals } from '../errors.ts';
import { type StateDeps, viewSteps } from '../instances/accumulated-state.ts';
import { type AuthorityDeps, delegationHeaders, delegationIn, delegationOf } from '../instances/authority.ts';
import type { Definitions } from '../instances/definitions.ts';
import { findInstance, findStepInstance, listSteps } from '../instances/store.ts';
import type { ListOwnWallets } from '../instances/view.ts';

export interface FileDownloadDeps extends StateDeps, AuthorityDeps {
  readonly db: Pick<Database<BlueprintDatabase>, 'read'>;
  readonly clock: Clock;
  readonly definitions: Pick<Definitions, 'get'>;
  readonly listOwn: ListOwnWallets;
  readonly downloads: Downloads;
}

const text = z.string().max(128);
const params = z.object({
  wallet: text.describe('Address of one of your wallets.'),
  register: text.describe('The register, 32 hexadecimal digits.'),
  tx: text.describe('The step, 64 hexadecimal digits.'),
  fileId: text.describe('The id of the first chunk of the file.'),
});

/** Mounts the download of files by the ids of their first chunks. */
export function mountFileDownload(app: App, deps: FileDownloadDeps): void {
  addRoute(app, {
    method: 'GET',
    path: '/api/files/:wallet/:register/:tx/:fileId',
    operationId: 'getFileOfStep',
    tag: 'Files',
    summary: 'Download a file that a step refers to',
    description:
      'When a part of the file is wrong after the answer has begun, the connection is aborted: a complete answer is a ' +
      'verified file.',
    policy: 'RequireAuthenticated',
    rateLimit: 'Strict',
    params,
    headers: delegationHeaders,
    answers: { 200: media(anyType, 'The file, under its own content type.') },
    refusals: refusals(
      'INSTANCES_REBUILDING',
      'WALLETS_UNAVAILABLE',
      'WALLET_NOT_OWNED',
      'TX_NOT_FOUND',
      'PIN_UNRESOLVABLE',
      'REGISTER_UNAVAILABLE',
      'DELEGATION_INVALID',
      'DECRYPT_FAILED',
      'NOT_A_RECIPIENT',
      'FILE_NOT_FOUND',
      'DOWNLOAD_LIMIT',
      'FILES_UNAVAILABLE',
      'FILE_PURGED',
      'FILE_CORRUPT',
    ),
    // HEAD would cost as much as the first chunk.
    withoutHead: true,
    noStore: true,
    handle: async ({ caller, params: place, request }) => {
      const subject = { caller, bearer: bearerOf(request) };
      if (!(await deps.listOwn(subject.bearer)).includes(place.wallet)) throw refusal('WALLET_NOT_OWNED');
      const [registerId, txId] = [findRegisterId(place.register), findTxId(place.tx)];
      if (registerId === undefined || txId === undefined) throw refusal('TX_NOT_FOUND');
      const at = { registerId, txId, wallet: place.wallet, fileId: place.fileId };
      const file = await openFile(deps, subject, at, delegationIn(request.headers));
      const content = await deps.downloads.open({ file, registerId, subject: caller.subject });
      return answer(200, content, fileHeaders(file));
    },
  });
}

interface FilePlace {
  readonly registerId: string;
  readonly txId: string;
  readonly wallet: string;
  readonly fileId: string;
}

/**
 * The file at a place, in the view that a wallet has of the step.
 * @throws AppError not_found TX_NOT_FOUND or FILE_NOT_FOUND, forbidden NOT_A_RECIPIENT or DELEGATION_INVALID, conflict
 * PIN_UNRESOLVABLE, unprocessable DECRYPT_FAILED
 */
async function openFile(
  deps: FileDownloadDeps,
  subject: Subject,
  { registerId, txId, wallet, fileId }: FilePlace,
  given: string | undefined,
): Promise<FileReference> {
  const found = await findStepInstance(deps.db.read, registerId, txId);
  if (found === undefined) throw refusal('TX_NOT_FOUND');
  const { instanceId } = found;
  const instance = await findInstance(deps.db.read, registerId, instanceId, new Date(deps.clock.nowMs()));
  const steps = await listSteps(deps.db.read, registerId, instanceId);
  const step = steps.find((each) => each.txId === txId);
  if (instance === undefined || step === undefined) throw refusal('TX_NOT_FOUND');
  const pinned = await deps.definitions.get(registerId, instance.pin);
  const authority = async () => (await delegationOf(deps, subject, given)).token;
  const [view] = await viewSteps(deps, { instance, pinned }, [step], { wallets: [wallet], authority });
  if (view?.data === undefined)
    throw refusal(view?.isUnopened === true ? 'DECRYPT_FAILED' : 'NOT_A_RECIPIENT');
  const file = findFileOfChunk(view.data, fileId);
  if (file === undefined) throw refusal('FILE_NOT_FOUND');
  return file;
}
