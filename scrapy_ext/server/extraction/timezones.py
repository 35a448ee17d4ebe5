"""The time zone of a visitor from a country: that of most of the people there, by its name in the IANA database.

A country that is not here, like a request that names none, leaves the browser in the time zone of the server.
"""

from __future__ import annotations

from typing import Final

#: Countries and the city that names their zone, by the zone's region.
_ZONES: Final = {
    "Africa": "AO Luanda, BF Ouagadougou, BJ Porto-Novo, CD Kinshasa, CG Brazzaville, CI Abidjan, CM Douala, DZ "
    "Algiers, EG Cairo, ET Addis_Ababa, GA Libreville, GH Accra, GN Conakry, KE Nairobi, LY Tripoli, MA "
    "Casablanca, ML Bamako, MZ Maputo, NE Niamey, NG Lagos, RW Kigali, SN Dakar, TG Lome, TN Tunis, TZ "
    "Dar_es_Salaam, UG Kampala, ZA Johannesburg, ZM Lusaka, ZW Harare",
    "America": "AR Argentina/Buenos_Aires, BB Barbados, BO La_Paz, BR Sao_Paulo, BS Nassau, BZ Belize, CA Toronto, "
    "CL Santiago, CO Bogota, CR Costa_Rica, CU Havana, DO Santo_Domingo, EC Guayaquil, GT Guatemala, GY "
    "Guyana, HN Tegucigalpa, HT Port-au-Prince, JM Jamaica, MX Mexico_City, NI Managua, PA Panama, PE "
    "Lima, PR Puerto_Rico, PY Asuncion, SR Paramaribo, SV El_Salvador, TT Port_of_Spain, US New_York, UY "
    "Montevideo, VE Caracas",
    "Asia": "AE Dubai, AM Yerevan, AZ Baku, BD Dhaka, BH Bahrain, BN Brunei, CN Shanghai, CY Nicosia, GE Tbilisi, "
    "HK Hong_Kong, ID Jakarta, IL Jerusalem, IN Kolkata, IQ Baghdad, IR Tehran, JO Amman, JP Tokyo, KG "
    "Bishkek, KH Phnom_Penh, KR Seoul, KW Kuwait, KZ Almaty, LB Beirut, LK Colombo, MN Ulaanbaatar, MO "
    "Macau, MY Kuala_Lumpur, NP Kathmandu, OM Muscat, PH Manila, PK Karachi, QA Qatar, SA Riyadh, SG "
    "Singapore, SY Damascus, TH Bangkok, TW Taipei, UZ Tashkent, VN Ho_Chi_Minh, YE Aden",
    "Atlantic": "CV Cape_Verde, IS Reykjavik",
    "Australia": "AU Sydney",
    "Europe": "AD Andorra, AL Tirane, AT Vienna, BA Sarajevo, BE Brussels, BG Sofia, BY Minsk, CH Zurich, CZ "
    "Prague, DE Berlin, DK Copenhagen, EE Tallinn, ES Madrid, FI Helsinki, FR Paris, GB London, GI "
    "Gibraltar, GR Athens, HR Zagreb, HU Budapest, IE Dublin, IT Rome, LI Vaduz, LT Vilnius, LU "
    "Luxembourg, LV Riga, MC Monaco, MD Chisinau, ME Podgorica, MK Skopje, MT Malta, NL Amsterdam, NO "
    "Oslo, PL Warsaw, PT Lisbon, RO Bucharest, RS Belgrade, RU Moscow, SE Stockholm, SI Ljubljana, SK "
    "Bratislava, SM San_Marino, TR Istanbul, UA Kyiv, VA Vatican, XK Belgrade",
    "Indian": "MG Antananarivo, MU Mauritius",
    "Pacific": "NZ Auckland",
}
ZONES: Final[dict[str, str]] = {
    country: f"{region}/{city}"
    for region, places in _ZONES.items()
    for country, city in (place.split() for place in places.split(","))
}


def timezone_of(country: str | None) -> str | None:
    """The time zone for a country: ``Europe/Vienna`` for ``AT``."""
    return ZONES.get(country or "")
