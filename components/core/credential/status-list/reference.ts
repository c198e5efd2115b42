import { isJsonObject } from '../../encoding/json.ts';
import { refusePresentation } from '../presentation.ts';

/** Where the status of a credential is published (draft-ietf-oauth-status-list-21 section 6.2). */
export interface StatusReference {
  /** Zero-based position in the list. */
  readonly index: number;
  readonly uri: string;
}

const MAX_URI_LENGTH = 2048;

/**
 * Reads the member `status` of a credential; undefined when it is absent. `unsupported` when it names other mechanisms
 * only: such a credential can be revoked, and its status cannot be learnt.
 * @throws AppError unprocessable FORMAT when a `status_list` is malformed
 */
export function findStatusReference(status: unknown): StatusReference | 'unsupported' | undefined {
  if (status === undefined) return undefined;
  if (!isJsonObject(status)) refusePresentation('FORMAT', 'The status is no object', 'status');
  if (!Object.hasOwn(status, 'status_list')) return 'unsupported';
  const list = status['status_list'];
  if (!isJsonObject(list)) refusePresentation('FORMAT', 'The status list is no object', 'status');
  const { idx, uri } = list;
  if (typeof idx !== 'number' || !Number.isSafeInteger(idx) || idx < 0) {
    refusePresentation('FORMAT', 'The index of the status is no number from 0 on', 'status');
  }
  if (typeof uri !== 'string' || uri.length > MAX_URI_LENGTH || !URL.canParse(uri)) {
    refusePresentation('FORMAT', 'The address of the status list is no URI', 'status');
  }
  return { index: idx, uri };
}
