@file:OptIn(ExperimentalTime::class)

import io.ktor.client.HttpClient
import io.ktor.client.engine.java.Java
import java.security.MessageDigest
import java.util.Base64
import kotlin.time.ExperimentalTime
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.withContext
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.buildJsonObject
import kotlinx.serialization.json.put
import org.multipaz.claim.JsonClaim
import org.multipaz.claim.MdocClaim
import org.multipaz.credential.Credential
import org.multipaz.crypto.Algorithm
import org.multipaz.crypto.AsymmetricKey
import org.multipaz.crypto.PrivateKey
import org.multipaz.crypto.X509Cert
import org.multipaz.crypto.X509CertChain
import org.multipaz.document.Document
import org.multipaz.document.DocumentStore
import org.multipaz.document.buildDocumentStore
import org.multipaz.documenttype.DocumentTypeRepository
import org.multipaz.mdoc.credential.MdocCredential
import org.multipaz.presentment.SimplePresentmentSource
import org.multipaz.presentment.uriSchemePresentment
import org.multipaz.prompt.promptModelSilentConsent
import org.multipaz.provisioning.AuthorizationChallenge
import org.multipaz.provisioning.AuthorizationResponse
import org.multipaz.provisioning.DocumentProvisioningHandler
import org.multipaz.provisioning.DocumentProvisioningSettings
import org.multipaz.provisioning.Provisioning
import org.multipaz.provisioning.ProvisioningModel
import org.multipaz.provisioning.openid4vci.OpenID4VCI
import org.multipaz.provisioning.openid4vci.OpenID4VCIClientPreferences
import org.multipaz.provisioning.openid4vci.OpenID4VCILocalBackend
import org.multipaz.request.OpenID4VPRequesterIdentity
import org.multipaz.request.Requester
import org.multipaz.securearea.SecureAreaRepository
import org.multipaz.securearea.software.SoftwareSecureArea
import org.multipaz.storage.ephemeral.EphemeralStorage

private const val CLIENT_ID = "https://wallet.example"
private const val REDIRECT_URL = "https://wallet.example/back"
/** A batch: two keys of each credential. */
private const val KEYS = 2

private val settings = DocumentProvisioningSettings(
    keyBoundCredentialMaxUses = Int.MAX_VALUE,
    keyBoundCredentialNumPerDomain = KEYS,
    requestUserAuth = false,
)

/** Multipaz as a wallet in memory, whose person consents to everything. */
class Wallet private constructor(
    private val store: DocumentStore,
    private val secureArea: SoftwareSecureArea,
    private val maker: AsymmetricKey,
) {
    private val prompts = NoPrompts()
    private val http = HttpClient(Java) { followRedirects = false }
    private var last: Document? = null
    private val backend = OpenID4VCILocalBackend(
        clientAssertionKey = maker,
        attestationKey = maker,
        clientId = CLIENT_ID,
        walletName = "Independent wallet",
        walletLink = CLIENT_ID,
    )

    /**
     * Takes an offer.
     * @param approve what the person does in the browser: of the address of the issuer's page, where the page sends them
     * @return each credential: `kind`, `claims`, `faults` and `warnings` that Multipaz finds in it
     */
    suspend fun take(offer: String, approve: (String) -> String): JsonArray = coroutineScope {
        val model = modelOf(settings)
        val preferences = preferences()
        val taken = model.launch(contextOf(preferences)) { OpenID4VCI.createClientFromOffer(offer, preferences) }
        val approval = async {
            val asked = model.state.first { it is ProvisioningModel.Authorizing } as ProvisioningModel.Authorizing
            val challenge = asked.authorizationChallenges.single() as AuthorizationChallenge.OAuth
            model.provideAuthorizationResponse(AuthorizationResponse.OAuth(challenge.id, approve(challenge.url)))
        }
        try {
            describe(taken.await().also { last = it })
        } finally {
            approval.cancel()
        }
    }

    /** Gets one more copy of the credential that was taken last, by its refresh token; all copies. */
    suspend fun renew(): JsonArray {
        val document = checkNotNull(last) { "the wallet has taken nothing" }
        val granted = checkNotNull(document.authorizationData) { "the issuer gave no refresh token" }
        val copies = document.getCertifiedCredentials().size
        val model = modelOf(settings.copy(keyBoundCredentialNumPerDomain = copies + 1))
        val renewed = model.launch(contextOf(preferences()), document) {
            Provisioning.createClientFromAuthorizationData(granted)
        }
        return describe(renewed.await())
    }

    private fun modelOf(settings: DocumentProvisioningSettings) = ProvisioningModel(
        documentProvisioningHandler = DocumentProvisioningHandler(
            secureArea = secureArea,
            documentStore = store,
            defaultDocumentProvisioningSettings = settings,
        ),
        httpClient = http,
        promptModel = prompts,
        authorizationSecureArea = secureArea,
    )

    private fun contextOf(preferences: OpenID4VCIClientPreferences) =
        Dispatchers.Default + prompts + Environment(http, backend, preferences, secureArea)

    /** Multipaz remembers an issuer's metadata for as long as it gets the same object; a first offer adds a type to them. */
    private fun preferences() = OpenID4VCIClientPreferences(
        clientId = CLIENT_ID,
        redirectUrl = REDIRECT_URL,
        locales = listOf("en"),
        signingAlgorithms = listOf(Algorithm.ESP256),
    )

    /** Answers a request of a verifier; where the verifier sends the person, or null. */
    suspend fun present(request: String): String? {
        val source = SimplePresentmentSource(
            documentStore = store,
            documentTypeRepository = DocumentTypeRepository(),
            resolveTrustFn = { requester -> assertHash(requester).let { null } },
            showConsentPromptFn = ::promptModelSilentConsent,
            domainsMdocSignature = listOf(settings.mdocNoUserAuthDomain),
            domainsKeyBoundSdJwt = listOf(settings.sdJwtNoUserAuthDomain),
        )
        return withContext(prompts) {
            uriSchemePresentment(
                source = source,
                uri = request,
                appId = null,
                origin = null,
                httpClientEngineFactory = Java,
            )
        }
    }

    companion object {
        suspend fun create(makerPem: String): Wallet {
            val storage = EphemeralStorage()
            val secureArea = SoftwareSecureArea.create(storage)
            val areas = SecureAreaRepository.Builder().add(secureArea).build()
            val certificate = X509Cert.fromPem(blockOf(makerPem, "CERTIFICATE"))
            val maker = AsymmetricKey.X509CertifiedExplicit(
                certChain = X509CertChain(listOf(certificate)),
                privateKey = PrivateKey.fromPem(blockOf(makerPem, "PRIVATE KEY"), certificate.publicKey),
            )
            return Wallet(buildDocumentStore(storage, areas) {}, secureArea, maker)
        }
    }
}

/** Multipaz verifies the signature of a request and leaves it to the application whose key it is. */
private fun assertHash(requester: Requester) {
    val identity = requester.requesterIdentities.single() as OpenID4VPRequesterIdentity
    val leaf = identity.certChain.certificates.first().encoded.toByteArray()
    val hash = MessageDigest.getInstance("SHA-256").digest(leaf)
    val expected = "x509_hash:${Base64.getUrlEncoder().withoutPadding().encodeToString(hash)}"
    check(identity.clientId == expected) { "the verifier is ${identity.clientId}, not $expected" }
}

private suspend fun describe(document: Document): JsonArray =
    JsonArray(document.getCertifiedCredentials().map { describe(it) })

private suspend fun describe(credential: Credential): JsonObject {
    val found = credential.validate()
    return buildJsonObject {
        put("kind", if (credential is MdocCredential) "mso_mdoc" else "dc+sd-jwt")
        put("claims", claimsOf(credential))
        put("faults", JsonArray(found.errors.map { JsonPrimitive(it.message) }))
        put("warnings", JsonArray(found.warnings.map { JsonPrimitive(it.message) }))
    }
}

/** Claims by name; elements of an mdoc as `namespace/element`. */
private suspend fun claimsOf(credential: Credential): JsonObject {
    val named = credential.getClaims(null).associate { claim ->
        when (claim) {
            is JsonClaim -> claim.claimPath.joinToString("/") { (it as JsonPrimitive).content } to claim.value
            is MdocClaim -> "${claim.namespaceName}/${claim.dataElementName}" to claim.value.toJson()
        }
    }
    return JsonObject(named as Map<String, JsonElement>)
}

private fun blockOf(pem: String, label: String): String =
    requireNotNull(Regex("-----BEGIN $label-----.*?-----END $label-----", RegexOption.DOT_MATCHES_ALL).find(pem)) {
        "the file has no $label"
    }.value
