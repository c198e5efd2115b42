import { z } from 'zod';

/** The part of the Kubernetes API that the issuer uses. */
export interface ClusterApi {
  /**
   * Reviews a token at the API server (TokenReview).
   *
   * Errors: unavailable/TOKEN_REVIEW_UNAVAILABLE.
   */
  reviewToken(token: string, audience: string): Promise<TokenReview>;
  /**
   * Reads an object of the issuer's own namespace.
   *
   * Errors: not_found/KUBERNETES_NOT_FOUND, unavailable/KUBERNETES_UNAVAILABLE, which names the missing RBAC rule.
   */
  read(kind: StoredKind, name: string): Promise<StoredObject>;
  /**
   * Sets keys of the object's data if the object is unchanged since it was read.
   *
   * Errors: conflict/KUBERNETES_CONFLICT when it is not; and those of read.
   */
  write(
    kind: StoredKind,
    object: StoredObject,
    data: Readonly<Record<string, string>>,
  ): Promise<StoredObject>;
}

export type StoredKind = 'secrets' | 'configmaps';

/** A Secret or ConfigMap; values of a Secret are decoded. */
export interface StoredObject {
  readonly name: string;
  readonly resourceVersion: string;
  readonly annotations: Readonly<Record<string, string>>;
  readonly data: Readonly<Record<string, string>>;
}

const text = z.string().max(4096);

/** Status of a TokenReview (authentication.k8s.io/v1). */
export const tokenReview = z.object({
  authenticated: z.boolean().default(false),
  audiences: z.array(text).max(64).default([]),
  user: z
    .object({
      username: text.default(''),
      extra: z.record(text, z.array(text).max(64)).default({}),
    })
    .default({ username: '', extra: {} }),
  error: z.string().optional(),
});
export type TokenReview = z.output<typeof tokenReview>;
