import type { ColumnType } from 'kysely';

/** A file that is uploaded in encrypted chunks. */
interface FileUploadTable {
  upload_id: string;
  register_id: string;
  sender_wallet: string;
  /** Organisation, or the person or service without one, whose quota the bytes count for. */
  quota_owner: string;
  total_chunks: number;
  /** Bytes of the plaintext. */
  file_size: number;
  /** SHA-256 of what the sender declared of the file. */
  declared: Buffer;
  created_at: Date;
  /** Null while an operation claims the upload. */
  expires_at: Date | null;
  purged_at: Date | null;
}

interface FileChunkTable {
  upload_id: string;
  chunk_index: number;
  /** Its content address, lower-case hex. */
  chunk_id: string;
  /** Bytes of nonce, ciphertext and tag. */
  size: number;
  /** Null once it was purged. */
  encrypted_data: Buffer | null;
  created_at: Date;
}

/** An operation whose payload refers to an upload. */
interface FileClaimTable {
  upload_id: string;
  operation_id: string;
  position: number;
}

interface FileUsageTable {
  quota_owner: string;
  stored_bytes: ColumnType<number, number, number>;
}

/** Tables of files. */
export interface FileTables {
  file_uploads: FileUploadTable;
  file_chunks: FileChunkTable;
  file_claims: FileClaimTable;
  file_usage: FileUsageTable;
}
