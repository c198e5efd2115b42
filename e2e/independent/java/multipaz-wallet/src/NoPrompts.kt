import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import org.multipaz.prompt.PromptModel

/** No person is asked for anything: keys of the wallet have no passphrase. */
class NoPrompts : PromptModel(Settings) {
    override val promptModelScope = CoroutineScope(Dispatchers.Default)

    private object Settings : PromptModel.Builder({ reason, _ -> error("the wallet asks its person: $reason") }) {
        override fun build(): PromptModel = NoPrompts()
    }
}
