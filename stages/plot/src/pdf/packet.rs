//! What the file says of itself to programs: its XMP packet (ISO 16684-1).

use super::PRODUCER;
use crate::figure::Figure;
use crate::wording::escape;

impl Figure {
    /// The packet. What the document information says, too, it says in the same words.
    pub(super) fn packet(&self) -> String {
        let language = |text: &str| {
            let text = escape(text);
            format!("<rdf:Alt><rdf:li xml:lang=\"x-default\">{text}</rdf:li></rdf:Alt>")
        };
        let title = language(self.name());
        let description = if self.description.is_empty() {
            String::new()
        } else {
            format!("<dc:description>{}</dc:description>", language(&self.description))
        };
        let identity = self.identity.xmp_description();
        format!(
            "<?xpacket begin=\"\u{feff}\" id=\"W5M0MpCehiHzreSzNTczkc9d\"?>\n\
             <x:xmpmeta xmlns:x=\"adobe:ns:meta/\">\n\
             <rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\">\n\
             {identity}\n\
             <rdf:Description rdf:about=\"\" xmlns:dc=\"http://purl.org/dc/elements/1.1/\" \
             xmlns:pdf=\"http://ns.adobe.com/pdf/1.3/\">\n\
             <dc:format>application/pdf</dc:format>\n\
             <dc:title>{title}</dc:title>{description}\n\
             <pdf:Producer>{PRODUCER}</pdf:Producer>\n\
             </rdf:Description>\n\
             </rdf:RDF>\n\
             </x:xmpmeta>\n\
             <?xpacket end=\"r\"?>"
        )
    }
}
