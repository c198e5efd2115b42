import io.ktor.client.HttpClient
import kotlin.reflect.KClass
import kotlin.reflect.safeCast
import kotlinx.coroutines.Dispatchers
import org.multipaz.provisioning.openid4vci.OpenID4VCIBackend
import org.multipaz.provisioning.openid4vci.OpenID4VCIClientPreferences
import org.multipaz.rpc.backend.BackendEnvironment
import org.multipaz.securearea.SecureArea
import org.multipaz.securearea.SecureAreaProvider

/** What Multipaz looks up while it takes credentials. Its own environment needs a main thread of a user interface. */
class Environment(
    private val http: HttpClient,
    private val backend: OpenID4VCIBackend,
    private val preferences: OpenID4VCIClientPreferences,
    secureArea: SecureArea,
) : BackendEnvironment {
    private val areas = SecureAreaProvider<SecureArea>(Dispatchers.Default) { secureArea }

    override fun <T : Any> getInterface(clazz: KClass<T>): T? = clazz.safeCast(
        when (clazz) {
            HttpClient::class -> http
            OpenID4VCIBackend::class -> backend
            OpenID4VCIClientPreferences::class -> preferences
            SecureAreaProvider::class -> areas
            else -> null
        },
    )
}
